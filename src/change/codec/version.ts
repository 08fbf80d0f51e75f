import { bytesToBase58 } from "../../base/base58.ts";
import { concatBytes, utf8ToBytes } from "../../base/bytes.ts";
import { sha256 } from "../../crypto/hash.ts";

const WRITER_TAG = utf8ToBytes("svc/writer-name/v1\0");
const RECORD_ID_TAG = utf8ToBytes("svc/record-id/v1\0");

/**
 * The position of a change in its object's order, as the text that `_ver` holds: a length digit and the lamport in
 * base 32, then 12 hex digits of the change id. Texts compare bytewise as (lamport, id) do.
 */
export function versionOf(lamport: number, changeId: Uint8Array): string {
  const digits = lamport.toString(32);
  // Asking for an array's buffer has one made, which costs more than the rest of the digits.
  return digits.length.toString(32) + digits + changeId.toHex().slice(0, 12);
}

const VERSION = /^([1-9a-b])([0-9a-v]{1,11})([0-9a-f]{12})$/;

/** The lamport and the id's first six bytes of a version text, or undefined. */
export function parseVersion(text: string): { lamport: number; idPrefix: Uint8Array } | undefined {
  const match = VERSION.exec(text);
  if (!match) return undefined;
  const digitCount = Number.parseInt(match[1]!, 32);
  const digits = text.slice(1, 1 + digitCount);
  const rest = text.slice(1 + digitCount);
  if (rest.length !== 12) return undefined;
  return { lamport: Number.parseInt(digits, 32), idPrefix: Buffer.from(rest, "hex") };
}

/** The id that a change gives to the `index`-th record it creates without one: base58 of 64 bits of a hash. */
export function autoRecordId(changeId: Uint8Array, index: number): string {
  const id = bytesToBase58(sha256(concatBytes(RECORD_ID_TAG, changeId)).subarray(0, 8));
  return index === 0 ? id : `${id}/${index}`;
}

/** A writer's name in records of ours: base58 of 96 bits of the hash of its author and its id. */
export function writerName(author: Uint8Array, id: Uint8Array): string {
  return bytesToBase58(sha256(concatBytes(WRITER_TAG, author, id)).subarray(0, 12));
}
