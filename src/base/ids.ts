/** Branded id types. An id is made in one place and passed on with its brand, so that two kinds are never confused. */
type Brand<T, Name extends string> = T & { readonly __brand: Name };

/** CIDv1 (dag-cbor, sha2-256) in base32 of a space's signed header. */
export type SpaceId = Brand<string, "SpaceId">;
/** CIDv1 in base32 of an object's root change. */
export type ObjectId = Brand<string, "ObjectId">;
/** CIDv1 in base32 of a change. A history version is a change id. */
export type ChangeId = Brand<string, "ChangeId">;
/** Account id: base58(0x5b ‖ Ed25519 public key ‖ CRC16), begins with `A`. */
export type AccountId = Brand<string, "AccountId">;
/** libp2p peer id of a device key, begins with `12D3KooW`. */
export type PeerId = Brand<string, "PeerId">;
