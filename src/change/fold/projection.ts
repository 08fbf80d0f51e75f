import type { SpaceId } from "../../base/ids.ts";
import type { DirtyRow } from "../../store/rows/dirty-row-table.ts";
import { OBJECTS_COLLECTION } from "../../store/rows/row-table.ts";
import { ROW_LIVE, ROW_TOMBSTONE } from "../../store/rows/row-types.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { StoredChange } from "../../store/tables/change-table.ts";
import type { BodyOpener } from "../codec/body-opener.ts";
import type { OnRepair, RulesRegistry } from "../codec/ports.ts";
import { versionOf } from "../codec/version.ts";
import type { DamagedChanges } from "../graph/damaged-changes.ts";
import type { ObjectCache, ObjectEntry } from "../graph/object-cache.ts";
import type { OrderKey } from "../graph/order.ts";
import { createEnvelopes, finalRecordIds } from "./change-parts.ts";
import { createChangeReader } from "./change-reader.ts";
import type { OpenBatch } from "./commit-batch.ts";
import { collectionOf, OBJECTS_DATASET } from "./datasets.ts";
import { createChangeFold } from "./fold-change.ts";
import { createHistoryNotes } from "./history-notes.ts";
import { createLocalFields } from "./local-fields.ts";
import { createModifiedStamp } from "./modified-stamp.ts";
import { createOpenedChanges } from "./opened-changes.ts";
import { createRefolder } from "./refolder.ts";
import { createRowWriter } from "./row-writer.ts";

export { OBJECTS_DATASET } from "./datasets.ts";
export type { FoldOutcome, Rejection } from "./fold-change.ts";

const ID_BYTES = 32;

/** What the deletion log says of an object. */
export interface Deletion {
  version: string;
  timeMs: number;
}

interface ProjectionDeps {
  spaceId: SpaceId;
  store: SpaceStore;
  /** False: the space keeps no history. */
  keepsHistory: boolean;
  objects: ObjectCache;
  opener: BodyOpener;
  registry: RulesRegistry;
  batch: OpenBatch;
  /** What becomes of changes that the disk changed. */
  damaged: Pick<DamagedChanges, "setAside">;
  checkpointEveryOps?: number | undefined;
  foldSliceMs: number;
  onRepair: OnRepair;
}

/**
 * Rows as a function of the changes that count. A change that comes last in a record's order costs its own ops; one
 * that sorts before something already folded marks the record, which is folded anew once at the end of the batch.
 */
export type Projection = ReturnType<typeof createProjection>;

export function createProjection({ store, objects, opener, registry, batch, ...deps }: ProjectionDeps) {
  const { changes, rows } = store;
  const envelopeOf = createEnvelopes(deps.spaceId);
  const reader = createChangeReader({ changes, opener, registry });
  const writer = createRowWriter(rows, deps.checkpointEveryOps);
  const history = createHistoryNotes(deps.keepsHistory ? store.history : undefined, store.datasetNo);
  const modified = createModifiedStamp({ changes, rows, objects, batch });
  const opened = createOpenedChanges(changes, reader, envelopeOf, deps.damaged);
  const refolder = createRefolder({
    store,
    objects,
    writer,
    opened,
    sliceMs: deps.foldSliceMs,
    batch,
    onDamaged,
    onRefolded: modified.restore,
  });
  const foldChange = createChangeFold({ store, registry, writer, refolder, modified, history, envelopeOf, batch });

  const tombstoneText = (object: ObjectEntry, deletion: Deletion): string => {
    const root = changes.byId(object.id)!;
    return JSON.stringify({
      id: object.idText,
      _deletedAt: { $date: new Date(deletion.timeMs).toISOString() },
      _ver: { id: versionOf(root.lamport, root.id), "*": deletion.version },
    });
  };

  /** Folds everything of an object from its changes. Device-local fields stay. Nothing is told. */
  function rebuildObject(object: ObjectEntry): void {
    store.dirtyRows.dropOfObject(object.no);
    for (const key of rows.rowsOfObject(object.no, object.idText)) {
      rows.dropCheckpoints(key.no);
      rows.reset(key);
      if (key.state === ROW_LIVE) rows.addLive(key.collectionId, -1);
    }
    modified.clear(object);
    for (const stored of changes.ofObject(object.no)) {
      if (stored.datasetNo !== 0) foldChange(reader.inputOf(stored, object));
    }
  }

  /** Which of its values was changed is not known: each of them says of which object it may be. */
  function onDamaged({ row, objectNo, from, to }: DirtyRow): void {
    const ofChange = ({ change }: OrderKey) => changes.byId(change.subarray(0, ID_BYTES))?.objectNo;
    store.dirtyRows.drop(row);
    for (const no of new Set([objectNo, rows.origin(row)?.objectNo, ofChange(from), ofChange(to)])) {
      const object = no === undefined ? undefined : objects.byNo(no);
      if (!object || object.deleted) continue;
      rebuildObject(object);
      deps.onRepair("object.refolding", {
        objectId: object.idText,
      });
    }
  }

  return {
    /** What a row is by all of its changes, and what of it does not follow from them. */
    foldWhole: refolder.foldWhole,
    stamped: modified.stamped,
    tombstoneText,
    /** Folds one change into the rows it names. The caller has put it into the log. */
    foldChange,
    notePendingBody: history.notePendingBody,
    replayOf: reader.replayOf,
    /** Something was missing in a row's history: it is folded anew with what touches it now. */
    markRow: (row: { no: number; ops: number }, { lamport, id }: StoredChange, object: ObjectEntry, dataset: string) =>
      refolder.mark([row], { lamport, change: id }, object, dataset),
    /** Finds an object's newest change again. */
    findNewestAnew: modified.findAnew,
    envelopeOf,
    setLocal: createLocalFields(store, batch),

    /** A verdict changed: the rows that the change touches are folded anew without or with it. */
    refoldTouchedBy(stored: StoredChange, object: ObjectEntry): void {
      const input = reader.inputOf(stored, object);
      const collectionId = collectionOf(store, object, input.body.dataset);
      for (const id of new Set(finalRecordIds(input))) {
        const head = rows.get(collectionId, id);
        if (head) refolder.mark([head], { lamport: stored.lamport, change: stored.id }, object, input.body.dataset);
      }
      modified.findAnew(object);
    },

    rebuildObject,

    /**
     * Puts a tombstone in the place of an object's row in the collection of all objects. It follows from the root and the
     * entry in the deletion log alone, so that whoever never had the row shows the same.
     */
    hideObjectRow(object: ObjectEntry, deletion: Deletion): void {
      const head = rows.get(OBJECTS_COLLECTION, object.idText);
      const doc = tombstoneText(object, deletion);
      if (!head) {
        const root = changes.byId(object.id)!;
        rows.insert(OBJECTS_COLLECTION, object.idText, doc, ROW_TOMBSTONE, root.lamport, root.id, 0);
        return;
      }
      if (head.doc === doc) return;
      if (head.hasLocal) rows.dropLocal(head.no);
      rows.dropCheckpoints(head.no);
      rows.update(head, doc, ROW_TOMBSTONE, head.lamport, head.change, head.ops);
      if (head.state !== ROW_LIVE) return;
      batch.touch({
        collectionId: OBJECTS_COLLECTION,
        object: object.idText,
        dataset: OBJECTS_DATASET,
        recordId: object.idText,
        versionId: "",
        before: head.doc,
        doc: null,
        effects: [{ type: "$unset", path: [] }],
        synced: true,
      });
    },

    /**
     * Before COMMIT: folds rows anew that were marked in this batch, as far as a slice goes, then writes the heads and stamps
     * of objects that were modified.
     */
    finishBatch(): void {
      if (refolder.owedMs() > 0) refolder.runSlice();
      modified.flush();
    },

    /** Goes on with the rows that are to be folded anew, for a few milliseconds. */
    refoldSlice: refolder.runSlice,
    /** Whether there are any: what they show is older than the log. */
    isOwing: refolder.isOwing,

    /** Before COMMIT, after all else: counts what collections gained and lost in this batch, a statement a collection. */
    countLive(): void {
      const gained = new Map<number, number>();
      for (const { collectionId, before, doc } of batch.touched())
        if ((before === null) !== (doc === null))
          gained.set(collectionId, (gained.get(collectionId) ?? 0) + (before === null ? 1 : -1));
      for (const [collectionId, by] of gained) if (by !== 0) rows.addLive(collectionId, by);
    },

    /** How long `finishBatch` will take for the rows marked so far, about. */
    owedMs: refolder.owedMs,

    forgetBatch(): void {
      refolder.forget();
      reader.forgetWriters();
    },
  };
}
