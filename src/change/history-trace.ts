import { utf8ToBytes } from "../base/bytes.ts";
import { sha256 } from "../crypto/hash.ts";

const TRACE_BYTES = 16;

/** What a trace id is found by: trace ids are opaque and of any length. */
export function traceKey(traceId: string): Uint8Array {
  return sha256(utf8ToBytes(traceId)).subarray(0, TRACE_BYTES);
}
