/** $lookup: records of the same collection by their ids (AGG-8). */
import { refusedAs } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { refusal } from "../../protocol/refusals.ts";
import { readPath } from "../expression/expression-path.ts";
import { withField } from "../expression/output-field.ts";
import { compareStrings } from "../value/value-order.ts";
import type { Sink } from "./aggregate-types.ts";
import { measureValue } from "./memory-meter.ts";

/** The record with an id, parsed; undefined if there is none. */
export type FetchById = (id: string) => JsonObject | undefined;

/** Adds the records that `localField` names (one id or an array of ids), each record once, by id ascending. */
export function createLookupSink(localField: string, as: string, next: Sink, fetchById: FetchById): Sink {
  return {
    push: (doc) => next.push(withField(doc, as, fetchAll(readPath(doc, localField), fetchById))),
    end: () => next.end(),
  };
}

function fetchAll(local: Json | undefined, fetchById: FetchById): JsonObject[] {
  const ids = new Set((Array.isArray(local) ? local : [local]).filter((id) => typeof id === "string"));
  const records: JsonObject[] = [];
  let bytes = 0;
  for (const id of [...ids].sort(compareStrings)) {
    const record = fetchById(id);
    if (!record) continue;
    bytes += measureValue(record);
    if (bytes > LIMITS.pipelineDocumentBytes)
      throw refusedAs("aggregate.limit_exceeded", { limit: "memory" }, refusal("memory.lookup"));
    records.push(record);
  }
  return records;
}
