/**
 * The total order over JSON values (QUERY-3): missing and null, numbers, strings, objects, arrays, booleans, dates.
 * Strings and keys compare by code point, as SQLite's BINARY collation does, not by UTF-16 unit.
 */
import type { Json, JsonObject } from "../../protocol/json.ts";
import { instantOf } from "./instant.ts";

/** Type classes in ascending sort order. */
export const TYPE_CLASS = { null: 0, number: 1, string: 2, object: 3, array: 4, boolean: 5, date: 6 } as const;
export type TypeClass = (typeof TYPE_CLASS)[keyof typeof TYPE_CLASS];

/** Returns the class of a value; `undefined` stands for a missing one and ranks with null. */
export function typeClassOf(value: Json | undefined): TypeClass {
  switch (typeof value) {
    case "number":
      return TYPE_CLASS.number;
    case "string":
      return TYPE_CLASS.string;
    case "boolean":
      return TYPE_CLASS.boolean;
    case "object":
      if (value === null) return TYPE_CLASS.null;
      if (Array.isArray(value)) return TYPE_CLASS.array;
      return instantOf(value) === undefined ? TYPE_CLASS.object : TYPE_CLASS.date;
    default:
      return TYPE_CLASS.null;
  }
}

/**
 * Returns a negative number, zero or a positive one. Objects compare key by key in the order of their keys: class, then name,
 * then value.
 */
export function compareValues(a: Json | undefined, b: Json | undefined): number {
  if (typeof a === "number" && typeof b === "number") return a < b ? -1 : a > b ? 1 : 0;
  if (typeof a === "string" && typeof b === "string") return compareStrings(a, b);
  const rank = typeClassOf(a);
  const difference = rank - typeClassOf(b);
  if (difference !== 0) return difference;
  switch (rank) {
    case TYPE_CLASS.boolean:
      return Number(a) - Number(b);
    case TYPE_CLASS.array:
      return compareArrays(a as Json[], b as Json[]);
    case TYPE_CLASS.object:
      return compareObjects(a as JsonObject, b as JsonObject);
    case TYPE_CLASS.date:
      return (instantOf(a) ?? 0) - (instantOf(b) ?? 0);
    default:
      return 0;
  }
}

/** Equality in this order: null and missing are equal; objects are equal only with the same keys in the same order. */
export function equalValues(a: Json | undefined, b: Json | undefined): boolean {
  return a === b || compareValues(a, b) === 0;
}

/** Order by code point, the order of the UTF-8 bytes. */
export function compareStrings(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return x < 0xd800 || y < 0xd800 ? x - y : compareFromSurrogate(a, b, i);
  }
  return a.length - b.length;
}

/** `i` is the first unit that differs and both units are at or above 0xd800, where UTF-16 order is not code point order. */
function compareFromSurrogate(a: string, b: string, i: number): number {
  const before = i > 0 ? a.charCodeAt(i - 1) : 0;
  if (before >= 0xd800 && before <= 0xdbff) {
    const pairs = (a.codePointAt(i - 1) ?? 0) - (b.codePointAt(i - 1) ?? 0);
    if (pairs !== 0) return pairs;
  }
  return (a.codePointAt(i) ?? 0) - (b.codePointAt(i) ?? 0);
}

function compareArrays(a: readonly Json[], b: readonly Json[]): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const order = compareValues(a[i], b[i]);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareObjects(a: JsonObject, b: JsonObject): number {
  const keysA = Object.keys(a);
  const keysB = Object.keys(b);
  const length = Math.min(keysA.length, keysB.length);
  for (let i = 0; i < length; i++) {
    const keyA = keysA[i] as string;
    const keyB = keysB[i] as string;
    const valueA = a[keyA];
    const valueB = b[keyB];
    const order =
      typeClassOf(valueA) - typeClassOf(valueB) || compareStrings(keyA, keyB) || compareValues(valueA, valueB);
    if (order !== 0) return order;
  }
  return keysA.length - keysB.length;
}
