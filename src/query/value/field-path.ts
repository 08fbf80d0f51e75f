/** Walks dotted paths into documents as MongoDB's matcher does: through arrays of objects, with digits as array indexes. */
import type { Json, JsonObject } from "../../protocol/json.ts";
import { instantOf } from "./instant.ts";

export interface FieldPath {
  readonly text: string;
  readonly segments: readonly string[];
}

/** Whether a candidate value satisfies a condition; `undefined` stands for a path that leads nowhere. */
export type ValueTest = (value: Json | undefined) => boolean;

const ARRAY_INDEX = /^(?:0|[1-9]\d{0,8})$/;

export function toFieldPath(text: string): FieldPath {
  return { text, segments: text.split(".") };
}

/** Returns the array index that a segment names, or -1. `01` is a key, never an index. */
export function arrayIndexOf(segment: string): number {
  return ARRAY_INDEX.test(segment) ? Number(segment) : -1;
}

/**
 * Returns an own property. It never returns anything inherited, so that `__proto__` and `constructor` are plain keys, nor
 * anything from inside a date.
 */
export function ownValue(object: JsonObject, key: string): Json | undefined {
  if (!Object.hasOwn(object, key)) return undefined;
  return key === "$date" && instantOf(object) !== undefined ? undefined : object[key];
}

/** Whether a value is a document that paths lead into: an object that is no date. */
export function isSubdocument(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && instantOf(value) === undefined;
}

/**
 * Compiles "some value at the path satisfies `test`". With `elements`, an array at the end of the path offers its elements
 * besides itself (an array reached by an index offers only itself). The result takes a document or, for a path of no segments, a
 * value.
 */
export function compilePathTest(path: FieldPath, test: ValueTest, elements: boolean): (value: Json) => boolean {
  const { segments } = path;
  const [first] = segments;
  if (first === undefined) return test;
  const indexes = segments.map(arrayIndexOf);
  if (segments.length > 1) return (value) => walk(value, segments, indexes, 0, test, elements, isDocument(value));
  // Names that Object.prototype has need the careful look-up; all others can be read directly.
  const read: (object: JsonObject) => Json | undefined =
    first in Object.prototype ? (object) => ownValue(object, first) : (object) => object[first];
  return (value) => {
    if (!isDocument(value)) return test(undefined);
    const found = Array.isArray(value) ? walkIndex(value, indexes[0] ?? -1) : read(value);
    return test(found) || (elements && Array.isArray(found) && some(found, test));
  };
}

function isDocument(value: Json): value is JsonObject {
  return typeof value === "object" && value !== null;
}

function walkIndex(array: readonly Json[], index: number): Json | undefined {
  return index >= 0 && index < array.length ? array[index] : undefined;
}

function some(values: readonly Json[], test: ValueTest): boolean {
  for (let i = 0; i < values.length; i++) if (test(values[i])) return true;
  return false;
}

/** `root`: `value` is the document itself, so an array (inside `$elemMatch`) is read by its indexes alone. */
function walk(
  value: Json | undefined,
  segments: readonly string[],
  indexes: readonly number[],
  at: number,
  test: ValueTest,
  elements: boolean,
  root: boolean,
): boolean {
  if (at === segments.length) return test(value) || (elements && Array.isArray(value) && some(value, test));
  if (Array.isArray(value)) {
    const index = indexes[at] as number;
    if (root) return walk(walkIndex(value, index), segments, indexes, at + 1, test, elements, false);
    return walkArray(value, segments, indexes, at, test, elements);
  }
  if (typeof value !== "object" || value === null) return test(undefined);
  return walk(ownValue(value, segments[at] as string), segments, indexes, at + 1, test, elements, false);
}

function walkArray(
  array: readonly Json[],
  segments: readonly string[],
  indexes: readonly number[],
  at: number,
  test: ValueTest,
  elements: boolean,
): boolean {
  const index = indexes[at] as number;
  for (let i = 0; i < array.length; i++) {
    const element = array[i] as Json;
    const isObject = isSubdocument(element);
    if (isObject && walk(element, segments, indexes, at, test, elements, false)) return true;
    if (i !== index) continue;
    if (at + 1 === segments.length) {
      if (test(element)) return true;
    } else if (isObject) {
      if (walk(element, segments, indexes, at + 1, test, elements, false)) return true;
    } else if (Array.isArray(element) && walkArray(element, segments, indexes, at + 1, test, elements)) return true;
  }
  return false;
}
