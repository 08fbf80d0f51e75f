import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import type { RecordChange, RecordOp } from "../codec/change-body.ts";
import type { ChangeEnvelope, DatasetRules } from "../codec/dataset-rules.ts";
import { createElementKeys, type ElementKeys } from "./element-keys.ts";
import { pathFault, segmentsOf } from "./field-path.ts";
import { claimPath, type VersionTree, versionsIn } from "./version-tree.ts";

/** A record as the fold sees it. A tombstone is sticky: nothing ever follows it. */
export type RecordState =
  | { kind: "absent" }
  | { kind: "live"; doc: JsonObject }
  | { kind: "tombstone"; doc: JsonObject };

/** What subscribers are told: ops collapsed to what they set or removed. `path: []` is the root, with dotted keys. */
export interface Effect {
  type: "$set" | "$unset";
  path: string[];
  payload?: Json;
}

/** An op that was dropped; `opIndex` -1 stands for the whole record's change. */
interface Drop {
  opIndex: number;
  reason: string;
}

export interface FoldResult {
  state: RecordState;
  /** Empty when nothing took effect. */
  effects: Effect[];
  drops: Drop[];
}

const NO_EFFECTS: Effect[] = [];

export const ABSENT: RecordState = { kind: "absent" };

/**
 * Applies one change's part on one record, in the order of changes. `state.doc` is taken over and mutated. `id` is the
 * final record id. A pure function of its arguments: replaying a record's changes in order always gives the same bytes.
 */
export function foldRecord(
  state: RecordState,
  id: string,
  change: RecordChange,
  envelope: ChangeEnvelope,
  rules: DatasetRules,
  traceIds?: readonly string[],
): FoldResult {
  if (state.kind === "tombstone") {
    return {
      state,
      effects: NO_EFFECTS,
      drops: change.delete ? [] : [{ opIndex: -1, reason: "the record is deleted" }],
    };
  }
  if (change.delete) return foldDelete(state, id, envelope, rules, traceIds);
  const creating = state.kind === "absent";
  if (creating) {
    if (!change.upsert) return { state, effects: NO_EFFECTS, drops: [] };
    const isNamed = rules.idRule === "auto" && change.id !== "";
    const reason = isNamed
      ? "the server names the records of this dataset"
      : rules.refuseCreate?.(id, change.ops, envelope);
    if (reason) return { state, effects: NO_EFFECTS, drops: [{ opIndex: -1, reason }] };
  }
  const doc: JsonObject = creating ? { id, _ver: { id: envelope.version, "*": envelope.version } } : state.doc;
  const effects: Effect[] = [];
  const drops: Drop[] = [];
  const sets: GrownSets = new Map();
  for (let index = 0; index < change.ops.length; index++) {
    const op = change.ops[index]!;
    const write = (segments: string[], single: RecordOp) => {
      const effectsBefore = effects.length;
      const reason =
        rules.refuseOp?.(doc, segments, single, creating, envelope) ??
        applyOp(
          doc,
          segments,
          rules.rewriteOp?.(segments, single, envelope) ?? single,
          effects,
          sets,
          rules.dropsEmptied?.(segments) === true,
        );
      if (reason) drops.push({ opIndex: index, reason });
      else if (effects.length > effectsBefore) claimPath(doc["_ver"] as VersionTree, segments, envelope.version);
    };
    if (op.path !== "") {
      const segments = segmentsOf(op.path);
      const fault = pathFault(op.path, segments);
      if (fault) drops.push({ opIndex: index, reason: fault });
      else write(segments, op);
      continue;
    }
    if ((op.type !== "$set" && op.type !== "$unset") || !isJsonObject(op.value)) {
      drops.push({ opIndex: index, reason: "an empty path takes $set or $unset with an object of paths" });
      continue;
    }
    const { value } = op;
    for (const path of Object.keys(value)) {
      if (path === "id") continue;
      const segments = segmentsOf(path);
      const fault = pathFault(path, segments);
      if (fault) drops.push({ opIndex: index, reason: `${path}: ${fault}` });
      else write(segments, { type: op.type, path, value: value[path]! });
    }
  }
  if (!creating && effects.length === 0) return { state, effects, drops };
  for (const [segments, value] of rules.stamps?.(doc, creating, envelope) ?? []) {
    setAt(doc, segments, value);
    claimPath(doc["_ver"] as VersionTree, segments, envelope.version);
    effects.push({ type: "$set", path: [...segments], payload: value });
  }
  keepTraces(doc, envelope.version, traceIds);
  return {
    state: { kind: "live", doc },
    effects: creating ? [{ type: "$set", path: [], payload: rootPayload(effects) }] : effects,
    drops,
  };
}

function foldDelete(
  state: RecordState,
  id: string,
  envelope: ChangeEnvelope,
  rules: DatasetRules,
  traceIds?: readonly string[],
): FoldResult {
  const before: JsonObject = state.kind === "live" ? state.doc : { id };
  const reason = rules.refuseDelete?.(before, envelope);
  if (reason) return { state, effects: NO_EFFECTS, drops: [{ opIndex: -1, reason }] };
  const created = (before["_ver"] as VersionTree | undefined)?.["id"] ?? envelope.version;
  const doc: JsonObject = {
    id,
    _deletedAt: { $date: new Date(envelope.timeMs).toISOString() },
    _ver: { id: created, "*": envelope.version },
  };
  if (before["_traces"]) doc["_traces"] = before["_traces"];
  keepTraces(doc, envelope.version, traceIds);
  return { state: { kind: "tombstone", doc }, effects: [{ type: "$unset", path: [] }], drops: [] };
}

/** A create reaches subscribers as one `$set` at the root whose keys are dotted paths. */
function rootPayload(effects: readonly Effect[]): JsonObject {
  const payload: JsonObject = {};
  for (const { type, path, payload: value } of effects) {
    const key = path.length === 1 ? path[0]! : path.join(".");
    if (type === "$set") payload[key] = value ?? null;
    else delete payload[key];
  }
  return payload;
}

/**
 * The arrays that a change's `$addToSet` and `$pull` work on, with their elements' keys. The first of them takes a copy
 * and is the effect; the others change that copy, so that thousands of them cost no more than one array.
 */
type GrownSets = Map<Json[], ElementKeys>;

/** Applies one op to one field, in place; answers why it cannot be. Nothing is touched when it answers. */
function applyOp(
  doc: JsonObject,
  path: string[],
  op: RecordOp,
  effects: Effect[],
  sets: GrownSets,
  dropsEmptied: boolean,
): string | undefined {
  const { value } = op;
  if (op.type !== "$unset" && value === undefined) return `${op.type} needs a value`;
  if (op.type === "$inc" && typeof value !== "number") return "$inc takes a number";
  const parent = containerOf(doc, path, op.type !== "$unset" && op.type !== "$pull");
  if (parent === "blocked") return "the path leads through a value that is no object";
  const key = path[path.length - 1]!;
  const put = (next: Json): undefined => {
    parent![key] = next;
    effects.push({ type: "$set", path, payload: Array.isArray(next) ? [...next] : next });
  };
  if (op.type === "$set") return put(value!);
  const current = parent && Object.hasOwn(parent, key) ? parent[key] : undefined;
  switch (op.type) {
    case "$unset":
      if (parent) delete parent[key];
      effects.push({ type: "$unset", path: dropsEmptied ? dropEmptied(doc, path) : path });
      return undefined;
    case "$inc": {
      if (current !== undefined && typeof current !== "number") return "$inc needs a number in the field";
      const sum = (current ?? 0) + (value as number);
      return Number.isFinite(sum) ? put(sum) : "the sum is not a finite number";
    }
    case "$addToSet":
    case "$pull": {
      if (current === undefined && op.type === "$pull") return undefined;
      if (current !== undefined && !Array.isArray(current)) return `${op.type} needs an array in the field`;
      let items = current ?? [];
      let keys = sets.get(items);
      if (!keys) {
        items = [...items];
        keys = createElementKeys(items);
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

/** `_traces`: the trace ids of each version that `_ver` still names. */
function keepTraces(doc: JsonObject, version: string, traceIds: readonly string[] | undefined): void {
  const known = doc["_traces"];
  const fresh = traceIds !== undefined && traceIds.length > 0;
  if (!fresh && !isJsonObject(known)) return;
  const traces: JsonObject = isJsonObject(known) ? known : {};
  if (fresh) traces[version] = [...traceIds];
  const named = versionsIn(doc["_ver"] as VersionTree);
  for (const traced of Object.keys(traces)) if (!named.has(traced)) delete traces[traced];
  if (Object.keys(traces).length > 0) doc["_traces"] = traces;
  else delete doc["_traces"];
}
