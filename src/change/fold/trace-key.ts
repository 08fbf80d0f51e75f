import { utf8ToBytes } from "../../base/bytes.ts";
import { sha256 } from "../../crypto/hash.ts";

const TRACE_BYTES = 16;

/** What a trace id is found by: trace ids are opaque and of any length. */
export function traceKey(traceId: string): Uint8Array {
  return sha256(utf8ToBytes(traceId)).subarray(0, TRACE_BYTES);
}

/** So many traces of one change are found by; its author's server keeps to far fewer, but bodies come from anywhere. */
const MAX_TRACES = 1_000;

/** The keys that a change's traces are indexed under. */
export function traceKeys(traceIds: readonly string[] | undefined): Uint8Array[] {
  return (traceIds ?? []).slice(0, MAX_TRACES).map(traceKey);
}
