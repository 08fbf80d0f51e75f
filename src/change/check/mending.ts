import type { CommitQueue } from "../../store/commit/commit-queue.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { BODIES_GIVEN_UP } from "../../store/tables/pending-body-table.ts";
import { REPLICA_TARGETS } from "../../store/tables/sync-table.ts";
import type { OnRepair } from "../codec/ports.ts";
import type { OpenBatch } from "../fold/commit-batch.ts";
import type { ObjectCache } from "../graph/object-cache.ts";
import type { WriterChains } from "../graph/writer-chains.ts";
import type { Collection } from "./space-check.ts";

interface MendingDeps {
  queue: Pick<CommitQueue, "enqueue">;
  store: Pick<
    SpaceStore,
    "derived" | "mendKept" | "mendTypes" | "onMistyped" | "forgetNumbers" | "rows" | "datasetName" | "sync" | "putMeta"
  >;
  objects: Pick<ObjectCache, "byNo">;
  chains: Pick<WriterChains, "clear">;
  batch: Pick<OpenBatch, "touch">;
  /** An object counts as deleted from now on, if it is deleted: when this device learned of it is not known any more. */
  dateAnew(objectNo: number): void;
  onRepair: OnRepair;
  onFailure: ((error: unknown) => void) | undefined;
}

/** Sets right, in writes behind those that wait, what going over a space has found damaged. */
export function createMending({ queue, store, objects, chains, batch, dateAnew, onRepair, onFailure }: MendingDeps) {
  /** As the first write of a batch: the rows of writers, too, are as their changes make them then. */
  const alone = <T>(run: () => T): Promise<T> => queue.enqueue(run, "background", "first");
  const soon = (run: () => void): void => void alone(run).catch((error: unknown) => onFailure?.(error));
  let isMending = false;
  const mendTypes = async (): Promise<void> => {
    if (isMending) return;
    isMending = true;
    try {
      const { kept, types } = await alone(() => {
        const mended = store.mendTypes();
        chains.clear();
        store.forgetNumbers();
        return mended;
      });
      if (kept.length > 0) onRepair("space.copies", { tables: kept });
      if (Object.keys(types).length > 0) onRepair("space.types", { tables: types });
    } finally {
      isMending = false;
    }
  };
  store.onMistyped(() => void mendTypes().catch((error: unknown) => onFailure?.(error)));

  return {
    soon,
    /**
     * Has those who hold what they read of a collection read it again: some of its rows are told of as they are, and who goes by
     * them takes all of the dataset anew.
     */
    readAgain: (collectionId: number, { objectNo, datasetNo }: Collection): void =>
      soon(() => {
        const object = objects.byNo(objectNo);
        if (!object || object.deleted) return;
        const of = { collectionId, object: object.idText, dataset: store.datasetName(datasetNo) };
        for (const no of store.derived.someRows(collectionId)) {
          const { id, doc = null } = store.rows.byNo(no) ?? {};
          if (id === undefined) continue;
          batch.touch({ ...of, recordId: id, versionId: "", before: doc, doc, effects: [], synced: false });
        }
      }),
    /** Sets right what a reader has found wrong (`store.derived.searches`). */
    async mendFound(found: Parameters<SpaceStore["derived"]["mendFound"]>[0]): Promise<void> {
      const targets = store.derived.wrongTargets(found);
      const mended = await alone(() => {
        const tables = store.derived.mendFound(found);
        for (const no of store.derived.unsureDeletions(found)) dateAnew(no);
        if (targets.length > 0) {
          for (const target of REPLICA_TARGETS) store.sync.forget(target);
          // What the network keeps is read again, from its start.
          store.putMeta(BODIES_GIVEN_UP, Uint8Array.of(1));
        }
        chains.clear();
        return tables;
      });
      if (targets.length > 0) onRepair("replica.kept", { of: targets });
      if (Object.keys(mended).length > 0) onRepair("space.rows", { tables: mended });
    },
    /** Gives values that are of another type than their columns theirs again, and makes the copies of small tables agree. */
    mendTypes,
    /** Makes the copies of small tables agree again. */
    async mendKept(): Promise<void> {
      const tables = await queue.enqueue(() => store.mendKept(), "background");
      if (tables.length > 0) onRepair("space.copies", { tables });
    },
  };
}
