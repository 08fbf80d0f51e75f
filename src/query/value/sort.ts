/** Sorts records (QUERY-3): the keys, the values that they compare by, and a comparator that decides ties by id. */
import { refusedAs, refusedPart } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { arrayIndexOf, type FieldPath, isSubdocument, ownValue, toFieldPath } from "./field-path.ts";
import { instantOf } from "./instant.ts";
import { compareStrings, compareValues, TYPE_CLASS, typeClassOf } from "./value-order.ts";

export interface SortKey {
  readonly path: FieldPath;
  readonly descending: boolean;
}

/** An empty array sorts before null. */
const EMPTY_ARRAY = Symbol("empty array");

/** A date whose instant is read once instead of at every comparison. */
class DateKey {
  readonly ms: number;
  constructor(ms: number) {
    this.ms = ms;
  }
}

type SortValue = Json | undefined | typeof EMPTY_ARRAY | DateKey;

/** What a record sorts by: one value per key, then its id. It is made once per record and compared often. */
export interface SortEntry {
  readonly values: readonly SortValue[];
  readonly id: string;
}

/**
 * Parses `sort`: an array of dotted paths; a `-` in front means descending. Absent means no order.
 * @throws SvcError request.schema for a wrong type, request.invalid_field for an empty path or more than 32 keys
 */
export function parseSort(input: unknown): SortKey[] {
  if (input === undefined) return [];
  if (!Array.isArray(input))
    throw refusedAs("request.schema", { path: "sort", expected: "string[]" }, refusal("sort.array"));
  const keys = input.map((entry: unknown, index): SortKey => {
    if (typeof entry !== "string")
      throw refusedAs(
        "request.schema",
        { path: `sort[${index}]`, expected: "string" },
        refusal("sort.text", { index }),
      );
    const descending = entry.startsWith("-");
    const text = descending ? entry.slice(1) : entry;
    if (text === "") throw invalidSort(refusal("sort.no_path", { index }));
    return { path: toFieldPath(text), descending };
  });
  if (keys.length > LIMITS.sortKeys) throw invalidSort(refusal("sort.paths"));
  return keys;
}

function invalidSort(why: Refusal) {
  return refusedPart("request.invalid_field", { field: "sort" }, why, "reason");
}

/**
 * Returns a comparator of whole records. Where many are compared, make their entries once (`toSortEntry`) and use
 * `compareEntries`.
 */
export function makeComparator(keys: readonly SortKey[]): (a: JsonObject, b: JsonObject) => number {
  const compare = compareEntries(keys);
  return (a, b) => compare(toSortEntry(keys, a), toSortEntry(keys, b));
}

export function toSortEntry(keys: readonly SortKey[], doc: JsonObject): SortEntry {
  const id = ownValue(doc, "id");
  return { values: keys.map((key) => sortValueOf(key, doc)), id: typeof id === "string" ? id : "" };
}

export function compareEntries(keys: readonly SortKey[]): (a: SortEntry, b: SortEntry) => number {
  return (a, b) => {
    for (let i = 0; i < keys.length; i++) {
      const order = compareSortValues(a.values[i], b.values[i]);
      if (order !== 0) return keys[i]?.descending ? -order : order;
    }
    return compareStrings(a.id, b.id);
  };
}

function compareSortValues(a: SortValue, b: SortValue): number {
  if (a === EMPTY_ARRAY || b === EMPTY_ARRAY) return a === b ? 0 : a === EMPTY_ARRAY ? -1 : 1;
  if (a instanceof DateKey) return b instanceof DateKey ? a.ms - b.ms : TYPE_CLASS.date - typeClassOf(b);
  if (b instanceof DateKey) return typeClassOf(a) - TYPE_CLASS.date;
  return compareValues(a, b);
}

function toSortValue(value: Json | undefined): SortValue {
  const ms = instantOf(value);
  return ms === undefined ? value : new DateKey(ms);
}

/** Returns the least value to which the path leads when ascending, the greatest when descending. */
function sortValueOf(key: SortKey, doc: JsonObject): SortValue {
  const { segments } = key.path;
  const [first] = segments;
  if (first !== undefined && segments.length === 1) {
    const value = ownValue(doc, first);
    if (!Array.isArray(value)) return toSortValue(value);
  }
  const best = new Extreme(key.descending);
  collect(doc, segments, 0, best);
  return best.value;
}

class Extreme {
  value: SortValue;
  #found = false;
  readonly #descending: boolean;

  constructor(descending: boolean) {
    this.#descending = descending;
  }

  offer(value: SortValue): void {
    const order = this.#found ? compareSortValues(value, this.value) : 0;
    if (!this.#found || (this.#descending ? order > 0 : order < 0)) this.value = value;
    this.#found = true;
  }
}

/**
 * Offers every value to which the path leads. It follows MongoDB's index keys, not its matcher: an array element in which the
 * path leads nowhere counts as missing, and a digit segment that names an element means that element alone.
 */
function collect(value: Json | undefined, segments: readonly string[], at: number, best: Extreme): void {
  if (at === segments.length) {
    if (!Array.isArray(value)) best.offer(toSortValue(value));
    else if (value.length === 0) best.offer(EMPTY_ARRAY);
    else for (const element of value) best.offer(toSortValue(element));
    return;
  }
  const segment = segments[at] as string;
  if (Array.isArray(value)) {
    const index = arrayIndexOf(segment);
    if (index >= 0 && index < value.length) collect(value[index], segments, at + 1, best);
    else if (value.length === 0) best.offer(undefined);
    else for (const element of value) collect(Array.isArray(element) ? undefined : element, segments, at, best);
    return;
  }
  collect(isSubdocument(value) ? ownValue(value, segment) : undefined, segments, at + 1, best);
}
