/** How event types and targets are spelt, in words that follow "it" or the name of the field. */
export const EVENT_TYPE_GRAMMAR = "is a dotted slug of a-z, 0-9 and _, at most 128 characters";
export const TARGET_GRAMMAR = "is 1 to 128 of A-Z, a-z, 0-9, dot, _ and -";
