/** One kind of bytes that come from others. */
import { utf8ToBytes } from "../../../src/base/bytes.ts";
import type { CborValue } from "../../../src/base/dag-cbor.ts";
import type { SpaceId } from "../../../src/base/ids.ts";
import { cidFromDigest } from "../../../src/crypto/cid.ts";
import { sha256 } from "../../../src/crypto/hash.ts";
import type { Rng } from "../rng.ts";

export interface WireCodec {
  readonly name: string;
  /** How often it is tried, relative to others: what is signed or sealed is slow. */
  readonly weight: number;
  /** Good bytes. */
  make(rng: Rng): Uint8Array;
  /** Bytes as somebody who knows the format makes them. */
  spoil(rng: Rng, good: Uint8Array): Uint8Array;
  /** What is read; undefined for a refusal by a value. */
  decode(bytes: Uint8Array): unknown;
  /** Whether an error is the refusal that is meant. */
  refuses(error: unknown): boolean;
  /** The bytes that what was read has; left out where a seal or a signature stands between. */
  encode?(value: never): Uint8Array;
}

export const spaceDigest = sha256(utf8ToBytes("a space"));
export const spaceId = cidFromDigest(spaceDigest) as SpaceId;
export const refusesWith =
  (...kinds: (new (...args: never[]) => Error)[]) =>
  (error: unknown) =>
    kinds.some((kind) => error instanceof kind);
export const map = (value: CborValue | undefined) => value as { [field: string]: CborValue };

export function bytesOf(length: number): Uint8Array {
  return new Uint8Array(length).fill(3);
}
