import { utf8ToBytes } from "../base/bytes.ts";
import { refusedAs, type SvcError } from "../protocol/errors.ts";
import type { Json, JsonObject } from "../protocol/json.ts";
import { refusal } from "../protocol/refusals.ts";
import { RollBackWith, type WriteScope } from "../store/commit/commit-queue.ts";
import type { RowState } from "../store/rows/row-types.ts";
import type { SpaceStore } from "../store/space-store.ts";
import type { ChangeBody } from "./codec/change-body.ts";
import type { DatasetRules } from "./codec/dataset-rules.ts";
import type { OpenBatch, TouchedRecord } from "./fold/commit-batch.ts";
import { DELETION_RULES, DELETIONS_DATASET, DELETIONS_TYPE } from "./fold/deletion-log.ts";
import type { Projection, Rejection } from "./fold/projection.ts";
import type { RecordReader } from "./fold/record-reader.ts";
import type { ObjectCache, ObjectEntry } from "./graph/object-cache.ts";
import type { Unblocked } from "./graph/unblocked.ts";
import type { Appended, LocalWriter } from "./local-writer.ts";

/** What a write may do. Everything in it becomes durable together or not at all. */
export interface WriteTx {
  scope: WriteScope;
  createObject(): ObjectEntry;
  ensureDerived(type: string, derivation: string): ObjectEntry;
  object(id: string): ObjectEntry | undefined;
  /**
   * One change to an object, all that it says or nothing: what is rejected of it fails the write. That it changes nothing is
   * no reason to fail; see `Appended.effective`. Errors: dataset.validation.
   */
  append(object: ObjectEntry, body: ChangeBody, rules: DatasetRules): Appended;
  /** The same for who answers what was rejected, op by op: the rest takes effect. */
  appendPartly(object: ObjectEntry, body: ChangeBody, rules: DatasetRules): Appended;
  /** Runs a part of the write that is undone alone when it throws; the error goes on to the caller. */
  attempt<T>(part: () => T): T;
  /** Rolls this write back and answers `result` all the same. */
  rollBackWith(result: unknown): never;
  setLocal(
    object: ObjectEntry,
    dataset: string,
    recordId: string,
    fields: Readonly<Record<string, Json | undefined>>,
  ): boolean;
  record(object: ObjectEntry, dataset: string, id: string): JsonObject | undefined;
  /** Is the record there at all, and how? */
  recordState(object: ObjectEntry, dataset: string, id: string): "absent" | "live" | "tombstone";
  /** The same for many records, as the store has them; records that never were are left out. */
  recordStates(object: ObjectEntry, dataset: string, ids: readonly string[]): Map<string, RowState>;
  /** Enters an object into the deletion log; false when it is there. Its row disappears with this commit. */
  deleteObject(object: ObjectEntry): boolean;
  /** Keeps a single value beside the space, under a name of its own; `engine.note` reads it. */
  putNote(name: string, value: Uint8Array): void;
  dropNote(name: string): void;
  /** What this batch has done so far, earlier writes included; for caches that follow records. */
  touched(): readonly TouchedRecord[];
  /** A version text for what no change carries (device-local writes). */
  localVersion(): string;
}

interface WriteTxDeps {
  store: Pick<SpaceStore, "putMeta" | "dropMeta">;
  objects: ObjectCache;
  records: RecordReader;
  writer: LocalWriter;
  projection: Projection;
  batch: OpenBatch;
  unblocked: Unblocked;
  localVersion(): string;
}

/** What a write transaction is made of. */
export function createWriteTx(deps: WriteTxDeps, scope: WriteScope): WriteTx {
  const { objects, records, writer, projection, batch, unblocked, localVersion } = deps;
  const appendPartly: WriteTx["appendPartly"] = (object, body, rules) => {
    const appended = writer.append(object, body, rules, scope);
    batch.countLocalChange(object.idText);
    for (const name of appended.defined ?? []) unblocked.note("definition", utf8ToBytes(name), scope);
    return appended;
  };
  return {
    scope,
    createObject: () => writer.createObject(scope),
    ensureDerived: (type, derivation) => writer.ensureDerived(type, derivation, scope),
    object: (id) => objects.byText(id),
    append(object, body, rules) {
      const appended = appendPartly(object, body, rules);
      const [rejection] = appended.rejections;
      if (rejection) throw rejected(body.dataset, rejection);
      return appended;
    },
    appendPartly,
    attempt: (part) => scope.attempt(part),
    rollBackWith(result) {
      throw new RollBackWith(result);
    },
    setLocal: (object, dataset, recordId, fields) =>
      projection.setLocal(object, dataset, recordId, fields, localVersion()),
    record: records.record,
    recordState: records.recordState,
    recordStates: records.recordStates,
    deleteObject(object) {
      const { effective } = writer.append(
        writer.ensureDerived(DELETIONS_TYPE, "", scope),
        { dataset: DELETIONS_DATASET, records: [{ id: object.idText, upsert: true, ops: [] }] },
        DELETION_RULES,
        scope,
      );
      batch.countLocalChange(undefined);
      return effective;
    },
    putNote: deps.store.putMeta,
    dropNote: deps.store.dropMeta,
    touched: batch.touched,
    localVersion,
  };
}

function rejected(dataset: string, { refusal: why }: Rejection): SvcError {
  return refusedAs("dataset.validation", { dataset }, refusal("write.not_made", { dataset, why }), { reason: why });
}
