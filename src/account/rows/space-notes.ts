/** Kept in the store of a space that this account joins: this device's request whose answer is awaited. */
export const JOIN_ASKED = "join-asked";
