import type { JsonObject } from "../../protocol/json.ts";
import { OBJECTS_COLLECTION, type RowTable } from "../../store/rows/row-table.ts";
import { ROW_LIVE } from "../../store/rows/row-types.ts";
import type { ChangeTable } from "../../store/tables/change-table.ts";
import { versionOf } from "../codec/version.ts";
import type { ObjectCache, ObjectEntry } from "../graph/object-cache.ts";
import { compareOrder } from "../graph/order.ts";
import type { ReplayInput } from "./change-parts.ts";
import type { OpenBatch } from "./commit-batch.ts";
import { OBJECTS_DATASET } from "./datasets.ts";

interface ModifiedStampDeps {
  changes: ChangeTable;
  rows: RowTable;
  objects: ObjectCache;
  batch: OpenBatch;
}

/**
 * `modifiedAt` of an object's row follows the newest change that counts, in whatever dataset: it is no part of the row's own
 * fold, and written once a batch.
 */
export type ModifiedStamp = ReturnType<typeof createModifiedStamp>;

export function createModifiedStamp({ changes, rows, objects, batch }: ModifiedStampDeps) {
  const stamp = (object: ObjectEntry): void => {
    const head = rows.get(OBJECTS_COLLECTION, object.idText);
    if (!head || head.state !== ROW_LIVE || head.doc === null || object.modified.lamport === 0) return;
    const modifiedAt = { $date: new Date(object.modified.ms).toISOString() };
    const stamped = (text: string): string => JSON.stringify({ ...(JSON.parse(text) as JsonObject), modifiedAt });
    const doc = stamped(head.doc);
    if (doc === head.doc) return;
    const local = head.hasLocal ? rows.local(head.no) : undefined;
    if (local) rows.putLocal(head.no, stamped(local.base), local.fields);
    rows.setDoc(head, doc);
    batch.touch({
      collectionId: OBJECTS_COLLECTION,
      object: object.idText,
      dataset: OBJECTS_DATASET,
      recordId: object.idText,
      versionId: versionOf(object.modified.lamport, object.modified.change),
      before: head.doc,
      doc,
      effects: [{ type: "$set", path: ["modifiedAt"], payload: modifiedAt }],
      synced: false,
    });
  };

  return {
    /** The text of an object's row with its stamp. */
    stamped(object: ObjectEntry, text: string): string {
      if (object.modified.lamport === 0) return text;
      const modifiedAt = { $date: new Date(object.modified.ms).toISOString() };
      return JSON.stringify({ ...(JSON.parse(text) as JsonObject), modifiedAt });
    },
    /** A change was folded that counts. Answers whether it is the newest of its object. */
    note({ change, object }: Pick<ReplayInput, "change" | "object">): boolean {
      const { lamport, change: id } = object.modified;
      if (compareOrder({ lamport, change: id }, { lamport: change.lamport, change: change.id }) >= 0) return false;
      objects.setModified(object, { lamport: change.lamport, change: change.id, ms: change.timeMs });
      return true;
    },
    /** Whichever is the newest now that verdicts have changed. */
    findAnew(object: ObjectEntry): void {
      const newest = changes.newestOfObject(object.no);
      objects.setModified(
        object,
        newest
          ? { lamport: newest.lamport, change: newest.id, ms: newest.timeMs }
          : { lamport: 0, change: new Uint8Array(0), ms: 0 },
      );
    },
    clear: (object: ObjectEntry): void => objects.setModified(object, { lamport: 0, change: new Uint8Array(0), ms: 0 }),
    /** A row was folded from its own changes: an object's own is without its stamp then. */
    restore(object: ObjectEntry, dataset: string): void {
      if (dataset === OBJECTS_DATASET) objects.setModified(object, object.modified);
    },
    /** Before COMMIT: writes heads and stamps of objects that were modified. */
    flush(): void {
      for (const object of objects.flush()) stamp(object);
    },
  };
}
