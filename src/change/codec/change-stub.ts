import { concatBytes } from "../../base/bytes.ts";
import { sha256 } from "../../crypto/hash.ts";
import { CHANGE_ROOT, CHANGE_STUB, CHANGE_WHOLE, type ChangeKind } from "../../store/tables/change-table.ts";

/**
 * A change's id is the hash of its stub (CHANGE-1), `{c, h, s}`: the change `{b, h, s}` with the sealed body's sha2-256 in the body's
 * place. So a replica can drop the body of what was deleted and still prove the change's position in its writer's chain.
 */
const WHOLE = Buffer.from([0xa3, 0x61, 0x62]); // a map of three fields, the first is "b"
const STUB = Buffer.from([0xa3, 0x61, 0x63, 0x58, 0x20]); // the first is "c": 32 bytes

function startsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  for (let at = 0; at < start.length; at++) if (bytes[at] !== start[at]) return false;
  return true;
}

/** Where the sealed body of a change lies in its bytes, or undefined where there is none in canonical form (RFC 8949). */
function bodyOf(bytes: Uint8Array): { start: number; end: number } | undefined {
  if (!startsWith(bytes, WHOLE)) return undefined;
  const head = bytes[WHOLE.length];
  if (head === undefined || head >> 5 !== 2) return undefined;
  const info = head & 31;
  const extra = info < 24 ? 0 : info === 24 ? 1 : info === 25 ? 2 : info === 26 ? 4 : undefined;
  if (extra === undefined) return undefined;
  const start = WHOLE.length + 1 + extra;
  let length = extra === 0 ? info : 0;
  for (let at = start - extra; at < start; at++) length = length * 256 + (bytes[at] ?? 0);
  const least = extra === 0 ? 0 : extra === 1 ? 24 : extra === 2 ? 0x1_00 : 0x1_00_00;
  return length < least || start + length > bytes.length ? undefined : { start, end: start + length };
}

/** The stub of a change; bytes without a body come back as they are. */
export function stubOf(bytes: Uint8Array): Uint8Array {
  const body = bodyOf(bytes);
  return body ? concatBytes(STUB, sha256(bytes.subarray(body.start, body.end)), bytes.subarray(body.end)) : bytes;
}

/** Stands for a change whose bytes the disk changed: less than a stub, but as little as one to whoever wants its body. */
export const LOST_BYTES = new Uint8Array(0);

export const isStub = (bytes: Uint8Array): boolean => bytes.length === 0 || startsWith(bytes, STUB);

/** Digest that names a change, by its bytes or its stub's. Of other bytes, their hash. */
export const changeIdOf = (bytes: Uint8Array): Uint8Array => sha256(stubOf(bytes));

/** What the bytes of a change hold of it. */
export const kindOf = (bytes: Uint8Array): ChangeKind =>
  startsWith(bytes, WHOLE) ? CHANGE_WHOLE : isStub(bytes) ? CHANGE_STUB : CHANGE_ROOT;
