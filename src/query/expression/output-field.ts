/** The field names that a pipeline gives to its documents, and how they are written safely. */
import type { Json, JsonObject } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import { badPipeline, type PipelinePath } from "./aggregate-faults.ts";

/** @throws SvcError aggregate.bad_pipeline for an empty name, one with a dot, or one that begins with `$` */
export function checkOutputName(name: string, where: PipelinePath): string {
  if (name === "") throw badPipeline(where, refusal("output.nameless"));
  if (name.includes(".")) throw badPipeline(where, refusal("output.dotted"));
  if (name.startsWith("$")) throw badPipeline(where, refusal("output.dollar"));
  return name;
}

/** Sets an own property whatever its name is: `__proto__` must not become the prototype. */
export function setField(target: JsonObject, name: string, value: Json): void {
  if (name !== "__proto__") target[name] = value;
  else Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Returns a copy with one field set, or removed where the value is missing. */
export function withField(doc: JsonObject, name: string, value: Json | undefined): JsonObject {
  const copy = { ...doc };
  if (value === undefined) delete copy[name];
  else setField(copy, name, value);
  return copy;
}
