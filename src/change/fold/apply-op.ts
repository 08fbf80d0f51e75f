import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { RecordOp } from "../codec/change-body.ts";
import { createElementKeys, type ElementKeys } from "./element-keys.ts";

/** What subscribers are told: ops collapsed to what they set or removed. `path: []` is the root, with dotted keys. */
export interface Effect {
  type: "$set" | "$unset";
  path: string[];
  payload?: Json;
}

/**
 * The arrays that a change's `$addToSet` and `$pull` work on, with their elements' keys. The first of them takes a copy
 * and is the effect; the others change that copy, so that thousands of them cost no more than one array.
 */
export type GrownSets = Map<Json[], ElementKeys>;

/** Applies one op to one field, in place; answers why it cannot be. Nothing is touched when it answers. */
export function applyOp(
  doc: JsonObject,
  path: string[],
  op: RecordOp,
  effects: Effect[],
  sets: GrownSets,
  dropsEmptied: boolean,
): Refusal | undefined {
  const { value } = op;
  if (op.type !== "$unset" && value === undefined) return refusal("op.needs_value", { type: op.type });
  if (op.type === "$inc" && typeof value !== "number") return refusal("op.inc_takes_number");
  const parent = containerOf(doc, path, op.type !== "$unset" && op.type !== "$pull");
  if (parent === "blocked") return refusal("path.blocked");
  const key = path[path.length - 1]!;
  if (op.type === "$set") return void put(parent!, path, value!, effects);
  const current = parent && Object.hasOwn(parent, key) ? parent[key] : undefined;
  switch (op.type) {
    case "$unset":
      if (parent) delete parent[key];
      effects.push({ type: "$unset", path: dropsEmptied ? dropEmptied(doc, path) : path });
      return undefined;
    case "$inc": {
      if (current !== undefined && typeof current !== "number") return refusal("op.inc_needs_number");
      const sum = (current ?? 0) + (value as number);
      if (!Number.isFinite(sum)) return refusal("op.sum_not_finite");
      return void put(parent!, path, sum, effects);
    }
    case "$addToSet":
    case "$pull": {
      if (current === undefined && op.type === "$pull") return undefined;
      if (current !== undefined && !Array.isArray(current)) return refusal("op.needs_array", { type: op.type });
      const known = current && sets.get(current);
      const items = known ? current : [...(current ?? [])];
      const keys = known ?? createElementKeys(items);
      if (!known) {
        sets.set(items, keys);
        parent![key] = items;
        effects.push({ type: "$set", path, payload: items });
      }
      if (op.type === "$addToSet") keys.add(value!);
      else keys.remove(value!);
      return undefined;
    }
  }
}

function put(parent: JsonObject, path: string[], next: Json, effects: Effect[]): void {
  parent[path[path.length - 1]!] = next;
  effects.push({ type: "$set", path, payload: Array.isArray(next) ? [...next] : next });
}

/** Removes the objects on the way to `path` that are empty now, from below; answers the path of what is gone. */
function dropEmptied(doc: JsonObject, path: string[]): string[] {
  let gone = path;
  while (gone.length > 1) {
    const above = gone.slice(0, -1);
    const container = containerOf(doc, gone, false);
    if (container === "blocked" || (container && Object.keys(container).length > 0)) break;
    const holder = containerOf(doc, above, false);
    if (holder === "blocked") break;
    if (holder) delete holder[above.at(-1)!];
    gone = above;
  }
  return gone;
}

/** The object that holds the last segment; made on the way when `create`, else undefined where nothing is there. */
function containerOf(
  doc: JsonObject,
  segments: readonly string[],
  create: boolean,
): JsonObject | undefined | "blocked" {
  let node = doc;
  for (let i = 0; i < segments.length - 1; i++) {
    const segment = segments[i]!;
    const below = Object.hasOwn(node, segment) ? node[segment] : undefined;
    if (isJsonObject(below)) node = below;
    else if (below !== undefined) return "blocked";
    else if (!create) return undefined;
    else {
      const made: JsonObject = {};
      node[segment] = made;
      node = made;
    }
  }
  return node;
}

/** Sets a value at a path, replacing whatever stands in the way. For derived and local fields, which own their paths. */
export function setAt(doc: JsonObject, segments: readonly string[], value: Json): void {
  let node = doc;
  for (let i = 0; i < segments.length - 1; i++) {
    const segment = segments[i]!;
    const below = Object.hasOwn(node, segment) ? node[segment] : undefined;
    if (isJsonObject(below)) node = below;
    else {
      const made: JsonObject = {};
      node[segment] = made;
      node = made;
    }
  }
  node[segments[segments.length - 1]!] = value;
}
