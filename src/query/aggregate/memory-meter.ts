/** Estimates in bytes what a pipeline holds, and checks it against `memoryLimitBytes` (AGG-4). */
import { refusedAs, type SvcError } from "../../protocol/errors.ts";
import type { Json } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";

export interface MemoryMeter {
  /** @throws SvcError aggregate.limit_exceeded with limit "memory" */
  add(bytes: number): void;
  release(bytes: number): void;
}

/** Creates a meter; a negative limit means no limit. */
export function createMemoryMeter(limitBytes: number): MemoryMeter {
  let used = 0;
  return {
    add(bytes) {
      used += bytes;
      if (limitBytes >= 0 && used > limitBytes) throw tooLarge(refusal("memory.pipeline", { limitBytes }));
    },
    release(bytes) {
      used -= bytes;
    },
  };
}

/**
 * Returns a rough size in bytes of a value in memory.
 * @throws SvcError aggregate.limit_exceeded for a value that no document may hold: expressions can repeat a value many times
 */
export function measureValue(value: Json | undefined): number {
  return measureWithin(value, LIMITS.pipelineDocumentBytes);
}

/** Returns about how many characters a value has as text. @throws as `measureValue` does */
export function charsOf(value: Json | undefined): number {
  return measureValue(value) / BYTES_A_CHAR;
}

const BYTES_A_CHAR = 2;
const OBJECT_BYTES = 48;
const SLOT_BYTES = 16;

function measureWithin(value: Json | undefined, budget: number): number {
  let bytes = SLOT_BYTES;
  if (typeof value === "string") bytes += BYTES_A_CHAR * value.length;
  else if (Array.isArray(value)) {
    bytes += OBJECT_BYTES;
    for (const element of value) bytes += measureWithin(element, budget - bytes);
  } else if (typeof value === "object" && value !== null) {
    bytes += OBJECT_BYTES;
    for (const key in value) bytes += SLOT_BYTES + measureWithin(value[key], budget - bytes);
  }
  if (bytes > budget) throw tooLarge(refusal("memory.document"));
  return bytes;
}

function tooLarge(why: Refusal): SvcError {
  return refusedAs("aggregate.limit_exceeded", { limit: "memory" }, why);
}
