import type { AccountId } from "../../base/ids.ts";
import type { ChangeBody, RecordChange, RecordOp } from "../../change/codec/change-body.ts";
import type { DatasetRules } from "../../change/codec/dataset-rules.ts";
import { pathFault } from "../../change/fold/field-path.ts";
import { OBJECTS_DATASET, type Rejection } from "../../change/fold/projection.ts";
import { foldRecord } from "../../change/fold/record-fold.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { ChangeEngine, WriteTx } from "../../change/space-engine.ts";
import { refusedAs, svcError } from "../../protocol/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { canonicalInstants } from "../../query/value/canonical-instants.ts";
import { type SchemaPort, TYPE_MARKER, type WritableDataset } from "../type/port.ts";
import { createCarriedTypes } from "./carried-types.ts";
import { type PartialWriteResult, rejectionsIn, toPartialWriteResult } from "./port.ts";

interface ModifyOp {
  type: RecordOp["type"];
  path?: string;
  value?: Json;
}

interface ModifyRecord {
  id: string;
  upsert?: boolean;
  ops: ModifyOp[];
}

export interface ModifyRequest {
  objectId: string;
  dataset: string;
  records: ModifyRecord[];
  traceIds?: string[];
  scope?: "synced" | "local";
}

interface RecordServiceDeps {
  engine: ChangeEngine;
  schema: SchemaPort;
  accountId: AccountId;
  /** Throws space.read_only unless this account may write. */
  requireWriter(): void;
  /** Keeps what is counted of device-local fields in step with a caller's write of them. */
  followLocal(tx: WriteTx, object: ObjectEntry, dataset: string, before: JsonObject, after: JsonObject): void;
}

/** Writes to the records of datasets: everything of a request in one change, or nothing. */
export type RecordService = ReturnType<typeof createRecordService>;

export function createRecordService(deps: RecordServiceDeps) {
  const { engine, schema } = deps;

  const objectOf = (tx: WriteTx, objectId: string): ObjectEntry => {
    const object = tx.object(objectId);
    if (!object || object.deleted) throw svcError("object.not_found", { objectId });
    return object;
  };

  const carried = createCarriedTypes();

  /** The dataset, checked to be declared by a type that the object carries. */
  const datasetOf = (tx: WriteTx, object: ObjectEntry, name: string): WritableDataset => {
    const dataset = schema.datasetForWrite(name, tx);
    if (!dataset) throw refusedAs("dataset.unknown", { dataset: name }, refusal("dataset.unnamed", { name }));
    if (dataset.internal) throw invalid(name, refusal("write.own_endpoints"));
    if (dataset.typeId && !carried.has(tx, object, dataset.typeId))
      throw invalid(name, refusal("write.type_not_carried"));
    const types = carried.types(tx, object);
    if (!types || (dataset.content && types.includes(TYPE_MARKER))) throw invalid(name, refusal("write.no_content"));
    return dataset;
  };

  /** Appends a change; one that had no effect is not kept. */
  const append = (
    tx: WriteTx,
    object: ObjectEntry,
    dataset: WritableDataset,
    records: RecordChange[],
    traceIds: string[] | undefined,
  ): PartialWriteResult => {
    const body: ChangeBody = {
      dataset: dataset.rules.name,
      ...(dataset.definition ? { definition: dataset.definition } : {}),
      records,
      ...(traceIds && traceIds.length > 0 ? { traceIds } : {}),
    };
    const appended = tx.appendPartly(object, body, dataset.rules);
    const result = toPartialWriteResult(appended);
    return appended.effective ? result : tx.rollBackWith(result);
  };

  /** Applies ops to device-local fields, by the fold that synced ones go through. Each field is kept whole. */
  const modifyLocal = (
    tx: WriteTx,
    object: ObjectEntry,
    dataset: WritableDataset,
    request: ModifyRequest,
  ): PartialWriteResult => {
    const rejections: Rejection[] = [];
    let effective = false;
    const { name } = dataset.rules;
    const rules: DatasetRules = {
      name,
      idRule: "user",
      refuseOp: (_doc, segments, op) => localFault(dataset, { ...op, path: segments.join(".") }),
    };
    for (const [recordIndex, record] of request.records.entries()) {
      const reject = (opIndex: number, why: Refusal) =>
        void rejections.push({ recordIndex, recordId: record.id, opIndex, refusal: why });
      const stored = tx.record(object, name, record.id);
      if (!stored) {
        reject(-1, refusal("record.absent"));
        continue;
      }
      const before = { ...stored };
      const ops = record.ops.map((op): RecordOp => ({ ...op, path: op.path ?? "", ...canonicalValue(op) }));
      const { state, effects, drops } = foldRecord(
        { kind: "live", doc: stored, bytesAtMost: 0 },
        record.id,
        [{ id: record.id, ops }],
        {
          ...LOCAL_ENVELOPE,
          spaceId: engine.spaceId,
          objectId: object.idText,
        },
        rules,
      );
      for (const drop of drops) reject(drop.opIndex, drop.refusal);
      const fields: Record<string, Json | undefined> = {};
      const after = (state as { doc: JsonObject }).doc;
      for (const { path } of effects) fields[path[0]!] = after[path[0]!];
      if (effects.length === 0) continue;
      effective = true;
      tx.setLocal(object, name, record.id, fields);
      deps.followLocal(tx, object, name, before, after);
    }
    return {
      versionId: effective ? tx.localVersion() : "",
      changeId: "",
      recordIds: request.records.map((record) => record.id),
      ...rejectionsIn({ rejections }),
    };
  };

  return {
    /** `POST {S}/modify` (DATA-1). The request's shape was checked; its meaning is checked here. */
    modify(request: ModifyRequest): Promise<PartialWriteResult> {
      if (request.scope === "local") checkLocalShape(request);
      else deps.requireWriter();
      return engine.write((tx) => {
        const object = objectOf(tx, request.objectId);
        const dataset = datasetOf(tx, object, request.dataset);
        if (request.scope === "local") return modifyLocal(tx, object, dataset, request);
        const carries = (typeId: string) => carried.has(tx, object, typeId);
        const records = request.records.map((record, index) => toRecordChange(record, index, dataset, carries));
        const stored = (recordId: string) => tx.record(object, dataset.rules.name, recordId);
        const completed = dataset.complete?.(records, deps.accountId, stored) ?? records;
        return append(tx, object, dataset, completed, request.traceIds);
      });
    },

    /** `POST {S}/delete-records`: a tombstone each, also for ids that never were; again is no fault. */
    deleteRecords(request: {
      objectId: string;
      dataset: string;
      recordIds: string[];
      traceIds?: string[];
    }): Promise<PartialWriteResult> {
      deps.requireWriter();
      return engine.write((tx) => {
        const object = objectOf(tx, request.objectId);
        const dataset = datasetOf(tx, object, request.dataset);
        const empty = request.recordIds.indexOf("");
        if (empty >= 0) throw invalid(request.dataset, refusal("write.id_empty"), { recordIndex: empty });
        if (request.recordIds.length === 0)
          return tx.rollBackWith({ versionId: "", changeId: "", recordIds: [] } satisfies PartialWriteResult);
        return append(
          tx,
          object,
          dataset,
          request.recordIds.map((id) => ({ id, delete: true, ops: [] })),
          request.traceIds,
        );
      });
    },

    objectOf,
    datasetOf,
    append,
  };
}

/** A path beyond this stands in the details alone. */
const NAMED_PATH_CHARS = 200;

function invalid(dataset: string, why: Refusal, where: { recordIndex?: number; opIndex?: number; path?: string } = {}) {
  const { path } = where;
  const at = path === undefined || path.length > NAMED_PATH_CHARS ? {} : { path };
  const whole = refusal("write.refused", { dataset, ...at, why });
  return refusedAs("dataset.validation", { dataset, ...where }, whole, { reason: why });
}

function checkLocalShape(request: ModifyRequest): void {
  const refuse = (path: string, expected: Refusal) =>
    refusedAs("request.schema", { path }, refusal("local.expected", { path, expected }), { expected });
  if (request.traceIds) throw refuse("traceIds", refusal("local.absent"));
  if (request.dataset === OBJECTS_DATASET) throw refuse("dataset", refusal("local.other_dataset"));
  request.records.forEach((record, index) => {
    if (record.id === "") throw refuse(`records[${index}].id`, refusal("local.record_id"));
    if (record.upsert) throw refuse(`records[${index}].upsert`, refusal("local.absent_or_false"));
  });
}

/** What a local write has for an envelope: no change carries it, nothing of this is kept. */
const LOCAL_ENVELOPE = { version: "", changeId: new Uint8Array(0), author: "" as AccountId, timeMs: 0 };

function localFault(dataset: WritableDataset, op: RecordOp): Refusal | undefined {
  if (dataset.localFault) return dataset.localFault(op);
  return dataset.isLocalField?.(op.path) ? undefined : refusal("field.not_local");
}

function canonicalValue(op: ModifyOp): { value?: Json } {
  return op.value === undefined ? {} : { value: canonicalInstants(op.value) };
}

/** Structural faults refuse the whole request (DATA-1); what depends on records is judged by the fold. */
function toRecordChange(
  record: ModifyRecord,
  recordIndex: number,
  dataset: WritableDataset,
  carries: (typeId: string) => boolean,
): RecordChange {
  const name = dataset.rules.name;
  if (record.id === "" && !record.upsert) throw invalid(name, refusal("write.id_or_upsert"), { recordIndex });
  const ops = record.ops.map((op, opIndex): RecordOp => {
    const path = op.path ?? "";
    const where = { recordIndex, opIndex };
    const { value } = canonicalValue(op);
    const check = (each: string, assigned: Json | undefined) => {
      const fault = pathFault(each);
      if (fault) throw invalid(name, fault, { ...where, path: each });
      const scope = dataset.rules.scopeOf?.(each.split(".")) ?? "synced";
      if (scope !== "synced")
        throw invalid(name, scope === "local" ? refusal("write.local_field") : refusal("field.scope", { scope }), {
          ...where,
          path: each,
        });
      dataset.checkOp?.(op.type, each, assigned, carries);
    };
    if (path !== "") check(path, value);
    else if ((op.type !== "$set" && op.type !== "$unset") || !isJsonObject(value))
      throw invalid(name, refusal("op.needs_paths"), where);
    else for (const [each, assigned] of Object.entries(value)) check(each, assigned);
    if (op.type !== "$unset" && value === undefined)
      throw invalid(name, refusal("op.needs_value", { type: op.type }), where);
    if (op.type === "$inc" && typeof value !== "number") throw invalid(name, refusal("op.inc_takes_number"), where);
    return { type: op.type, path, ...(value === undefined ? {} : { value }) };
  });
  return { id: record.id, ...(record.upsert ? { upsert: true } : {}), ops };
}
