import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { RecordChange, RecordOp } from "../codec/change-body.ts";
import type { GrownSets } from "./apply-op.ts";
import type { VersionTree } from "./version-tree.ts";

const LIMIT_BYTES = LIMITS.recordBytes;
/** What is kept free for the fields that rules stamp once the ops are done. */
const STAMPS_BYTES = 8 << 10;
/** A level of `_ver`: its brackets, a version for the siblings and one for the field. */
const VERSION_LEVEL_BYTES = 80;
/** A later version's text may be longer than the one it takes the place of. */
const LATER_VERSION_BYTES = 12;
/** A UTF-16 unit takes at most so many bytes of UTF-8, and so many more where JSON escapes it. */
const UNIT_BYTES = 3;
const ESCAPED_UNIT_BYTES = 6;

const TOO_LARGE = refusal("record.too_large");

/** Size of a value as JSON text. */
const jsonBytes = (value: Json): number => Buffer.byteLength(JSON.stringify(value));

/** A bound for the size of a stored document, by its text. */
export const bytesAtMostOf = (text: string): number => UNIT_BYTES * text.length;

/** Keeps a record within its bound while a change is folded into it. */
export interface SizeWatch {
  /** Why an op is refused; one that is not counts as applied. */
  refuse(path: readonly string[], op: RecordOp): Refusal | undefined;
  /** Whether the trace ids still fit. What makes a record smaller is never refused, so they may not. */
  fitsTraces(): boolean;
  /** The document as JSON is no longer than this. */
  bytesAtMost(): number;
}

/**
 * By how much a change can make a record grow, about and never too little: most records are so far below their bound that
 * nobody has to measure them.
 */
export function growthAtMost(parts: readonly RecordChange[], traceIds: readonly string[] | undefined): number {
  let bytes = STAMPS_BYTES + tracesAtMost(traceIds);
  for (const { ops } of parts)
    for (const { path, value } of ops) {
      if (value !== undefined) bytes += valueAtMost(value);
      if (path !== "") bytes += pathAtMost(path);
      else if (isJsonObject(value)) for (const key of Object.keys(value)) bytes += pathAtMost(key);
    }
  return bytes;
}

function tracesAtMost(traceIds: readonly string[] | undefined): number {
  if (!traceIds) return 0;
  return traceIds.reduce((sum, { length }) => sum + ESCAPED_UNIT_BYTES * length + 3, VERSION_LEVEL_BYTES);
}

/** Bounds of so many paths are kept, of fields that are written again and again; no longer ones. */
const PATHS_KEPT = 1_000;
const KEPT_PATH_CHARS = 64;
const pathBounds = new Map<string, number>();

/** A bound for what a path takes in the record and in its version tree. */
function pathAtMost(path: string): number {
  const known = pathBounds.get(path);
  if (known !== undefined) return known;
  const bytes = 2 * ESCAPED_UNIT_BYTES * path.length + VERSION_LEVEL_BYTES * levelsOf(path);
  if (path.length > KEPT_PATH_CHARS) return bytes;
  if (pathBounds.size >= PATHS_KEPT) pathBounds.clear();
  pathBounds.set(path, bytes);
  return bytes;
}

function levelsOf(path: string): number {
  let levels = 1;
  for (let dot = path.indexOf("."); dot !== -1; dot = path.indexOf(".", dot + 1)) levels++;
  return levels;
}

function valueAtMost(value: Json): number {
  if (typeof value === "string") return ESCAPED_UNIT_BYTES * value.length + 2;
  if (typeof value !== "object" || value === null) return 26;
  let bytes = 2;
  if (Array.isArray(value)) for (const item of value) bytes += valueAtMost(item) + 1;
  else for (const key of Object.keys(value)) bytes += ESCAPED_UNIT_BYTES * key.length + 4 + valueAtMost(value[key]!);
  return bytes;
}

/**
 * Measures a record once, at the beginning of a change, and counts from there. What it refuses depends on the record before
 * the change and on the change alone, so that every device refuses the same ops.
 */
export function watchSize(doc: JsonObject, sets: GrownSets, traceIds: readonly string[] | undefined): SizeWatch {
  const tracesBytes = traceIds ? jsonBytes([...traceIds]) + VERSION_LEVEL_BYTES : 0;
  let bytes = jsonBytes(doc) + STAMPS_BYTES;
  return {
    refuse(path, op) {
      const growth = fieldGrowth(doc, path, op, sets) + versionGrowth(doc["_ver"] as VersionTree, path);
      if (growth > 0 && bytes + tracesBytes + growth > LIMIT_BYTES) return TOO_LARGE;
      bytes += growth;
      return undefined;
    },
    fitsTraces: () => bytes + tracesBytes <= LIMIT_BYTES,
    bytesAtMost: () => bytes + tracesBytes,
  };
}

/** By how much an op makes the record's fields grow, at most. What `$pull` takes away is not counted. */
function fieldGrowth(doc: JsonObject, path: readonly string[], op: RecordOp, sets: GrownSets): number {
  const { value } = op;
  if (op.type === "$pull" || (op.type !== "$unset" && value === undefined)) return 0;
  let node = doc;
  for (let i = 0; i < path.length - 1; i++) {
    const below = Object.hasOwn(node, path[i]!) ? node[path[i]!] : undefined;
    if (isJsonObject(below)) node = below;
    else if (op.type === "$unset" || below !== undefined) return 0;
    else return entryBytes(path.slice(i), value!);
  }
  const key = path[path.length - 1]!;
  const current = Object.hasOwn(node, key) ? node[key] : undefined;
  if (op.type === "$unset") return current === undefined ? 0 : -jsonBytes(current);
  if (current === undefined) return entryBytes([key], value!);
  if (op.type === "$set") return jsonBytes(value!) - jsonBytes(current);
  if (op.type === "$inc") return 24;
  return Array.isArray(current) && sets.get(current)?.has(value!) !== true ? jsonBytes(value!) + 1 : 0;
}

/** A new entry, with the objects on the way to it; `$addToSet` puts its value into an array. */
function entryBytes(path: readonly string[], value: Json): number {
  return path.reduce((sum, key) => sum + jsonBytes(key) + 4, jsonBytes(value) + 2);
}

/** By how much noting a write at a path makes `_ver` grow, at most. */
function versionGrowth(tree: VersionTree, path: readonly string[]): number {
  let node = tree;
  for (let i = 0; i < path.length; i++) {
    const below = Object.hasOwn(node, path[i]!) ? node[path[i]!] : undefined;
    if (typeof below === "object") node = below;
    else if (below !== undefined && i === path.length - 1) return LATER_VERSION_BYTES;
    else return path.slice(i).reduce((sum, key) => sum + jsonBytes(key) + VERSION_LEVEL_BYTES, 0);
  }
  return 0;
}
