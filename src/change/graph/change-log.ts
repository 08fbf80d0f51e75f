import type { WriteScope } from "../../store/commit/commit-queue.ts";
import type { ChangeTable, WriterRow } from "../../store/tables/change-table.ts";
import { kindOf } from "../codec/change-stub.ts";
import { type HeadRef, headsAfter } from "./heads.ts";
import type { ObjectCache, ObjectEntry } from "./object-cache.ts";
import type { WriterChains } from "./writer-chains.ts";

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

/** The graph of changes. Whether a change counts does not matter here. */
export type ChangeLog = ReturnType<typeof createChangeLog>;

/** A root has no content, so it belongs to no dataset. */
export const ROOT_DATASET = 0;
/** Of a derived root, which everybody makes alike. */
const NO_WRITER = 0;
const NOBODY = new Uint8Array(0);

export function createChangeLog(changes: ChangeTable, objects: ObjectCache, chains: Pick<WriterChains, "grow">) {
  return {
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
      if (writer.no !== NO_WRITER) chains.grow(writer, change, scope);
      return no;
    },

    /** Inserts the root of a derived object. It belongs to no writer, so every device stores it alike. */
    appendDerivedRoot(id: Uint8Array, bytes: Uint8Array, scope: WriteScope): ObjectEntry {
      const object = objects.insert(id, bytes, undefined, 0);
      scope.onRollback(() => objects.forget(object));
      this.append(
        { id, bytes, lamport: 0, parents: [], seq: 0, aclPos: 0, timeMs: 0, datasetNo: ROOT_DATASET, counts: true },
        object,
        { no: NO_WRITER, author: NOBODY, id: NOBODY, seq: 0, last: null, lamport: 0 },
        scope,
      );
      return object;
    },
  };
}
