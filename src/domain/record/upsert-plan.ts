import type { RecordChange } from "../../change/codec/change-body.ts";
import type { ChangeEnvelope } from "../../change/codec/dataset-rules.ts";
import { ABSENT, foldRecord } from "../../change/fold/record-fold.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { WriteTx } from "../../change/space-engine.ts";
import type { UpsertRejectionCode } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { canonicalInstants } from "../../query/value/canonical-instants.ts";
import { ROW_LIVE, ROW_TOMBSTONE, type RowState } from "../../store/rows/row-types.ts";
import type { WritableDataset } from "../type/port.ts";

/** What a record is to be brought to. */
export interface UpsertEntry {
  id: string;
  fields: JsonObject;
}

export interface UpsertRejection {
  index: number;
  id: string;
  code: UpsertRejectionCode;
  refusal: Refusal;
}

/** What a page of entries changes. */
export interface Page {
  changes: RecordChange[];
  created: number;
  updated: number;
  skipped: number;
  rejections: UpsertRejection[];
}

/** What the entries of a page are held against. */
interface PlanContext {
  readonly tx: Pick<WriteTx, "record" | "recordStates">;
  readonly object: ObjectEntry;
  readonly dataset: WritableDataset;
  readonly envelope: ChangeEnvelope;
  /**
   * Whether the rules judge new records here. Otherwise they are taken to pass, so that the fold of the change is their
   * only one.
   */
  readonly judge: boolean;
}

interface Planning extends PlanContext {
  readonly page: Page;
  readonly states: ReadonlyMap<string, RowState>;
  /** A later record of the page with the same id sees what the earlier one will have written. */
  readonly planned: Map<string, JsonObject>;
}

type Reject = (why: Refusal) => void;

/** Plans the entries `from` up to `to`. Undefined, when not told to judge, where two of them are about one record. */
export function planPage(
  context: PlanContext,
  all: readonly UpsertEntry[],
  from: number,
  to: number,
): Page | undefined {
  const page: Page = { changes: [], created: 0, updated: 0, skipped: 0, rejections: [] };
  const ids = all.slice(from, to).map(({ id }) => id);
  if (!context.judge && new Set(ids).size < ids.length) return undefined;
  const states = context.tx.recordStates(context.object, context.dataset.rules.name, ids);
  const planning: Planning = { ...context, page, states, planned: new Map() };
  for (let index = from; index < to; index++) planEntry(planning, index, all[index]!);
  return page;
}

function planEntry(planning: Planning, index: number, entry: UpsertEntry): void {
  const { tx, object, dataset, page, states, planned } = planning;
  const { id } = entry;
  const fields = canonicalInstants(entry.fields) as JsonObject;
  const reject: Reject = (why) => void page.rejections.push({ index, id, code: upsertCode(why), refusal: why });
  const known = planned.get(id);
  const stored = known ?? (states.get(id) === ROW_LIVE ? tx.record(object, dataset.rules.name, id) : undefined);
  const misnamed = nameFault(id, fields);
  // Looked up, such a text finds the record of another id.
  if (!id.isWellFormed()) reject(refusal("id.malformed"));
  else if (!stored && states.get(id) === ROW_TOMBSTONE) reject(refusal("record.deleted"));
  else if (misnamed) reject(misnamed);
  else if (stored) planUpdate(planning, id, stored, fields, reject);
  else {
    const fault = planCreate(planning, id, fields);
    if (fault) reject(fault);
    else page.created++;
  }
}

/** Answers why the record is not to be made. */
function planCreate(planning: Planning, id: string, fields: JsonObject): Refusal | undefined {
  const { page, envelope, dataset, planned } = planning;
  if (id === "") return refusal("id.empty");
  const change: RecordChange = {
    id,
    upsert: true,
    ops: Object.keys(fields).length > 0 ? [{ type: "$set", path: "", value: fields }] : [],
  };
  if (planning.judge) {
    const { state, drops } = foldRecord(ABSENT, id, [change], envelope, dataset.rules);
    if (drops.length > 0) return drops[0]!.refusal;
    if (state.kind === "live") planned.set(id, state.doc);
  }
  page.changes.push(change);
  return undefined;
}

/** The fields that a rule refuses are left out, each with its reason. */
function planUpdate(
  { page, envelope, dataset, planned }: Planning,
  id: string,
  stored: JsonObject,
  fields: JsonObject,
  reject: Reject,
): void {
  const differing = Object.entries(fields).filter(
    ([key, value]) => key !== "id" && !Bun.deepEquals(stored[key], value, true),
  );
  if (differing.length === 0) page.skipped++;
  const change: RecordChange = { id, upsert: true, ops: [] };
  const changed = planned.has(id) ? stored : { ...stored };
  for (const [key, value] of differing) {
    const op = { type: "$set" as const, path: key, value };
    const refused = dataset.rules.refuseOp?.(stored, [key], op, false, envelope);
    if (refused) {
      // The other refusals name the field themselves.
      reject(upsertCode(refused) === "upsert.rejected" ? refused : { ...refused, at: key });
      continue;
    }
    change.ops.push(op);
    changed[key] = value;
  }
  if (change.ops.length === 0) return;
  planned.set(id, changed);
  page.changes.push(change);
  page.updated++;
}

/** Why the names of an entry's fields are refused. A dot would be a path to a create and a name to an update. */
function nameFault(id: string, fields: JsonObject): Refusal | undefined {
  for (const key of Object.keys(fields)) {
    if (key.includes(".")) return { ...refusal("entry.dotted"), at: key };
    if (key === "id" && fields[key] !== id) return refusal("entry.other_id");
  }
  return undefined;
}

/** Of a write-once field, somebody else's record, one that is deleted, or any other refusal. */
function upsertCode({ code }: Refusal): UpsertRejectionCode {
  if (code === "field.write_once") return "upsert.immutable_field";
  if (code === "record.not_author") return "upsert.not_author";
  if (code === "record.deleted") return "upsert.record_deleted";
  return "upsert.rejected";
}
