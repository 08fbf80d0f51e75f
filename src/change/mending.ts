import type { CommitQueue } from "../store/commit-queue.ts";
import type { SpaceStore } from "../store/space-store.ts";
import type { OpenBatch } from "./fold/commit-batch.ts";
import type { ChangeLog } from "./graph/change-log.ts";
import type { ObjectCache } from "./graph/object-cache.ts";
import type { OnRepair } from "./ports.ts";
import type { Place } from "./space-check.ts";

/** What the log says where copies of small tables were made to agree. */
export const KEPT_MENDED = "what is kept of a space was damaged on the disk: its copies took its place";

interface MendingDeps {
  queue: Pick<CommitQueue, "enqueue">;
  store: Pick<SpaceStore, "derived" | "mendKept" | "rows" | "datasetName">;
  objects: Pick<ObjectCache, "byNo">;
  log: Pick<ChangeLog, "flush" | "clear">;
  batch: Pick<OpenBatch, "touch">;
  onRepair: OnRepair;
  onFailure: ((error: unknown) => void) | undefined;
}

/** Sets right, in writes behind those that wait, what going over a space has found damaged. */
export function createMending({ queue, store, objects, log, batch, onRepair, onFailure }: MendingDeps) {
  const soon = (run: () => void): void =>
    void queue.enqueue(run, "background").catch((error: unknown) => onFailure?.(error));
  return {
    soon,
    /**
     * Has those who hold what they read of a collection read it again: some of its rows are told of as they are, and who goes by
     * them takes all of the dataset anew.
     */
    readAgain: (collectionId: number, { objectNo, datasetNo }: Place): void =>
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
      const mended = await queue.enqueue(() => {
        log.flush();
        const tables = store.derived.mendFound(found);
        log.clear();
        return tables;
      }, "background");
      if (Object.keys(mended).length > 0)
        onRepair("rows that point nowhere, or sums, were damaged on the disk: they were set right", { tables: mended });
    },
    /** Makes the copies of small tables agree again. */
    async mendKept(): Promise<void> {
      const tables = await queue.enqueue(() => store.mendKept(), "background");
      if (tables.length > 0) onRepair(KEPT_MENDED, { tables });
    },
  };
}
