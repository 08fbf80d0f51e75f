import { isJsonObject, type JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { RecordChange, RecordOp } from "../codec/change-body.ts";
import type { ChangeEnvelope, DatasetRules } from "../codec/dataset-rules.ts";
import { applyOp, type Effect, type GrownSets, setAt } from "./apply-op.ts";
import { pathFault, segmentsOf } from "./field-path.ts";
import { growthAtMost, type SizeWatch, watchSize } from "./record-size.ts";
import { claimPath, type VersionTree, versionsIn } from "./version-tree.ts";

/** A record as the fold sees it. A tombstone is sticky: nothing ever follows it. */
export type RecordState =
  | { kind: "absent" }
  /** `bytesAtMost`: the document as JSON is no longer than this. */
  | { kind: "live"; doc: JsonObject; bytesAtMost: number }
  | { kind: "tombstone"; doc: JsonObject };

/** An op that was dropped; `opIndex` -1 stands for the whole part. */
interface Drop {
  /** The index of the part, among those parts of the change that are about the record. */
  part: number;
  opIndex: number;
  refusal: Refusal;
}

export interface FoldResult {
  state: RecordState;
  /** Empty when nothing took effect. */
  effects: Effect[];
  drops: Drop[];
  /** How many ops the parts have that took effect; a part without any counts as one. */
  ops: number;
}

export const ABSENT: RecordState = { kind: "absent" };

/** What the parts of one change on one record have in common. */
interface Folding {
  readonly id: string;
  readonly envelope: ChangeEnvelope;
  readonly rules: DatasetRules;
  readonly traceIds: readonly string[] | undefined;
  readonly sets: GrownSets;
  /** Whether the record may come near its bound. */
  readonly isWatched: boolean;
  watch: SizeWatch | undefined;
}

interface PartResult {
  state: RecordState;
  effects: Effect[];
  drops: Omit<Drop, "part">[];
}

/**
 * Applies what one change does to one record, part by part, in the order of changes. `state.doc` is taken over and mutated.
 * `id` is the final record id. A pure function of its arguments: replaying a record's changes in order always gives the same
 * bytes.
 */
export function foldRecord(
  state: RecordState,
  id: string,
  parts: readonly RecordChange[],
  envelope: ChangeEnvelope,
  rules: DatasetRules,
  traceIds?: readonly string[],
): FoldResult {
  const bytesAtMost = (state.kind === "live" ? state.bytesAtMost : 0) + growthAtMost(parts, traceIds);
  const isWatched = bytesAtMost > LIMITS.recordBytes;
  const folding: Folding = { id, envelope, rules, traceIds, sets: new Map(), isWatched, watch: undefined };
  if (isWatched && state.kind === "live") folding.watch = watchSize(state.doc, folding.sets, traceIds);
  const result: FoldResult = { state, effects: [], drops: [], ops: 0 };
  for (const [index, part] of parts.entries()) {
    const { state: next, effects, drops } = foldPart(result.state, part, folding);
    result.state = next;
    for (const drop of drops) result.drops.push({ part: index, ...drop });
    if (effects.length === 0) continue;
    result.ops += Math.max(1, part.ops.length);
    if (result.effects.length === 0) result.effects = effects;
    else for (const effect of effects) result.effects.push(effect);
  }
  if (result.effects.length === 0 || result.state.kind === "absent") return result;
  keepTraces(result.state.doc, envelope.version, folding.watch?.fitsTraces() === false ? undefined : traceIds);
  if (result.state.kind === "live") result.state.bytesAtMost = folding.watch?.bytesAtMost() ?? bytesAtMost;
  return result;
}

function foldPart(state: RecordState, part: RecordChange, folding: Folding): PartResult {
  const { id, envelope, rules } = folding;
  const refused = (why: Refusal): PartResult => ({ state, effects: [], drops: [{ opIndex: -1, refusal: why }] });
  if (state.kind === "tombstone")
    return part.delete ? { state, effects: [], drops: [] } : refused(refusal("record.deleted"));
  if (part.delete) {
    const why = rules.refuseDelete?.(state.kind === "live" ? state.doc : { id }, envelope);
    return why ? refused(why) : { state: tombstoneOf(state, id, envelope), effects: [REMOVED()], drops: [] };
  }
  if (state.kind === "live") return applyOps(state, part, false, folding);
  if (!part.upsert) return { state, effects: [], drops: [] };
  const isNamed = rules.idRule === "auto" && part.id !== "" && part.id !== rules.derivedId?.(part.ops, envelope);
  const why = isNamed ? refusal("id.is_the_servers") : rules.refuseCreate?.(id, part.ops, envelope);
  return why ? refused(why) : create(part, folding);
}

/** All of a create takes effect or nothing does: what it says together is what its author meant to be there. */
function create(part: RecordChange, folding: Folding): PartResult {
  const { id, envelope, sets, traceIds, isWatched } = folding;
  const doc: JsonObject = { id, _ver: { id: envelope.version, "*": envelope.version } };
  if (isWatched) folding.watch = watchSize(doc, sets, traceIds);
  const created = applyOps({ doc, bytesAtMost: 0 }, part, true, folding);
  if (created.drops.length === 0) return created;
  folding.watch = undefined;
  return { state: ABSENT, effects: [], drops: created.drops };
}

const REMOVED = (): Effect => ({ type: "$unset", path: [] });

/** Applies a part's ops to a record that is there, or is being made. */
function applyOps(
  { doc, bytesAtMost }: { doc: JsonObject; bytesAtMost: number },
  part: RecordChange,
  creating: boolean,
  folding: Folding,
): PartResult {
  const { envelope, rules } = folding;
  const effects: Effect[] = [];
  const drops: PartResult["drops"] = [];
  const state: RecordState = { kind: "live", doc, bytesAtMost };
  for (const [opIndex, op] of part.ops.entries()) {
    const drop = (why: Refusal) => void drops.push({ opIndex, refusal: why });
    if (op.path !== "") {
      const segments = segmentsOf(op.path);
      const why = pathFault(op.path, segments) ?? write(doc, segments, op, creating, folding, effects);
      if (why) drop(why);
    } else if ((op.type !== "$set" && op.type !== "$unset") || !isJsonObject(op.value)) drop(refusal("op.needs_paths"));
    else
      for (const path of Object.keys(op.value)) {
        if (path === "id") continue;
        const segments = segmentsOf(path);
        const fault = pathFault(path, segments);
        const single: RecordOp = { type: op.type, path, value: op.value[path]! };
        const why = fault ? { ...fault, at: path } : write(doc, segments, single, creating, folding, effects);
        if (why) drop(why);
      }
  }
  if (!creating && effects.length === 0) return { state, effects, drops };
  for (const [segments, value] of rules.stamps?.(doc, creating, envelope) ?? []) {
    setAt(doc, segments, value);
    claimPath(doc["_ver"] as VersionTree, segments, envelope.version);
    effects.push({ type: "$set", path: [...segments], payload: value });
  }
  return {
    state,
    effects: creating ? [{ type: "$set", path: [], payload: rootPayload(effects) }] : effects,
    drops,
  };
}

/** Writes to one field and notes it in the version tree; answers why it is refused, in which case nothing is touched. */
function write(
  doc: JsonObject,
  segments: string[],
  op: RecordOp,
  creating: boolean,
  { rules, envelope, sets, watch }: Folding,
  effects: Effect[],
): Refusal | undefined {
  const fault = rules.refuseOp?.(doc, segments, op, creating, envelope);
  if (fault) return fault;
  const written = rules.rewriteOp?.(segments, op, envelope) ?? op;
  const before = effects.length;
  const refused =
    watch?.refuse(segments, written) ??
    applyOp(doc, segments, written, effects, sets, rules.dropsEmptied?.(segments) === true);
  if (!refused && effects.length > before) claimPath(doc["_ver"] as VersionTree, segments, envelope.version);
  return refused;
}

function tombstoneOf(state: RecordState, id: string, envelope: ChangeEnvelope): RecordState {
  const before: JsonObject = state.kind === "live" ? state.doc : { id };
  const created = (before["_ver"] as VersionTree | undefined)?.["id"] ?? envelope.version;
  const doc: JsonObject = {
    id,
    _deletedAt: { $date: new Date(envelope.timeMs).toISOString() },
    _ver: { id: created, "*": envelope.version },
  };
  if (before["_traces"]) doc["_traces"] = before["_traces"];
  return { kind: "tombstone", doc };
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
