import type { ChangeTable, WriterRow } from "../../store/change-table.ts";
import type { WriteScope } from "../../store/commit-queue.ts";
import { kindOf } from "../codec/change-stub.ts";
import { type HeadRef, headsAfter } from "./heads.ts";
import type { ObjectCache, ObjectEntry } from "./object-cache.ts";

/** A change as it enters the log, bytes and all; where it stands was checked by the caller. */
export interface NewChange {
  id: Uint8Array;
  bytes: Uint8Array;
  lamport: number;
  parents: readonly Uint8Array[];
  seq: number;
  aclPos: number;
  timeMs: number;
  datasetNo: number;
  counts: boolean;
}

/**
 * The graph of changes and the chains of their writers. Whether a change counts does not matter here. Cached writers are
 * written back once a batch.
 */
export type ChangeLog = ReturnType<typeof createChangeLog>;

/** A root has no content, so it belongs to no dataset. */
export const ROOT_DATASET = 0;
const NOBODY = new Uint8Array(0);
/** Writers held between two batches: those who write are few, unless somebody makes writers. */
const MAX_CACHED_WRITERS = 4_096;

export function createChangeLog(changes: ChangeTable, objects: ObjectCache) {
  let writers = new Map<string, WriterRow>();
  const dirtyWriters = new Set<WriterRow>();
  const keyOf = (author: Uint8Array, id: Uint8Array) => Buffer.concat([author, id]).toString("latin1");

  return {
    findWriter(author: Uint8Array, id: Uint8Array): WriterRow | undefined {
      const key = keyOf(author, id);
      const known = writers.get(key);
      if (known) return known;
      const stored = changes.writer(author, id);
      if (stored) writers.set(key, stored);
      return stored;
    },

    addWriter(author: Uint8Array, id: Uint8Array, scope: WriteScope): WriterRow {
      const writer = changes.addWriter(author, id);
      const key = keyOf(author, id);
      writers.set(key, writer);
      scope.onRollback(() => void writers.delete(key));
      return writer;
    },

    /** Inserts a change, moves the object's heads past its parents and the writer's chain forward. Answers its number. */
    append(change: NewChange, object: ObjectEntry, writer: WriterRow, scope: WriteScope): number {
      const no = changes.insert({
        id: change.id,
        objectNo: object.no,
        lamport: change.lamport,
        writer: writer.no,
        seq: change.seq,
        aclPos: change.aclPos,
        timeMs: change.timeMs,
        datasetNo: change.datasetNo,
        counts: change.counts,
        kind: kindOf(change.bytes),
        bytes: change.bytes,
      });
      const before = object.heads;
      const head: HeadRef = { no, id: change.id, lamport: change.lamport, aclPos: change.aclPos };
      objects.setHeads(object, headsAfter(before, change.parents, head));
      scope.onRollback(() => objects.setHeads(object, before));
      const modified = object.modified;
      scope.onRollback(() => objects.setModified(object, modified));
      if (change.seq > writer.seq) {
        const { seq, last, lamport } = writer;
        Object.assign(writer, { seq: change.seq, last: change.id, lamport: change.lamport });
        dirtyWriters.add(writer);
        scope.onRollback(() => Object.assign(writer, { seq, last, lamport }));
      }
      return no;
    },

    /** Inserts the root of a derived object. It belongs to no writer, so every device stores it alike. */
    appendDerivedRoot(id: Uint8Array, bytes: Uint8Array, scope: WriteScope): ObjectEntry {
      const object = objects.insert(id, bytes, undefined, 0);
      scope.onRollback(() => objects.forget(object));
      this.append(
        { id, bytes, lamport: 0, parents: [], seq: 0, aclPos: 0, timeMs: 0, datasetNo: ROOT_DATASET, counts: true },
        object,
        { no: 0, author: NOBODY, id: NOBODY, seq: 0, last: null, lamport: 0 },
        scope,
      );
      return object;
    },

    flush(): void {
      for (const writer of dirtyWriters) changes.saveWriter(writer);
      dirtyWriters.clear();
      if (writers.size > MAX_CACHED_WRITERS) writers = new Map();
    },
    clear(): void {
      writers = new Map();
      dirtyWriters.clear();
    },
  };
}
