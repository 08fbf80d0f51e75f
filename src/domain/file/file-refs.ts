import { DELETIONS_DATASET } from "../../change/fold/deletion-log.ts";
import type { ChangeEngine, Reaction } from "../../change/space-engine.ts";
import { FILE_DURABLE } from "../../protocol/file-state.ts";
import { isJsonObject, type JsonObject } from "../../protocol/json.ts";
import type { FileRef, FileTable } from "../../store/tables/file-table.ts";
import { FILES_DATASET } from "./file-rules.ts";

/**
 * Keeps the references of files to contents in step with the files' rows, of which they are a projection, in the commits that
 * fold these.
 */
export function followFileRows(engine: ChangeEngine, table: FileTable) {
  /** Contents that lost a reference in a commit whose listeners have not been notified yet. */
  let dropped = new Set<string>();

  const followRows: Reaction = (touched, local) => {
    for (const { object, recordId, doc } of touched) {
      const known = table.ref(recordId);
      if (doc === null) {
        if (known?.child !== object) continue;
        table.dropRef(recordId);
        if (known.root !== null) dropped.add(known.root);
        continue;
      }
      const row = JSON.parse(doc) as JsonObject;
      table.putRef(refOfDoc(object, row));
      const child = local.object(object);
      const isDurable = table.ref(recordId)?.state === FILE_DURABLE;
      if (child && row["durable"] !== isDurable) local.setLocal(child, FILES_DATASET, recordId, { durable: isDurable });
    }
  };
  const followDeletions: Reaction = (touched) => {
    for (const { recordId, doc } of touched)
      if (doc !== null) for (const root of table.dropOwner(recordId)) dropped.add(root);
  };

  /** Made anew where a crash or an old program has parted them from the rows. */
  const repair = async (): Promise<void> => {
    if (!table.isOutOfStep(FILES_DATASET)) return;
    await engine.write((tx) => {
      if (!table.isOutOfStep(FILES_DATASET)) return;
      const pinned = table.newest(undefined, -1).filter((ref) => ref.pinned === 1);
      table.clearRefs();
      for (const objectNo of table.holders(FILES_DATASET)) {
        const child = engine.objects.byNo(objectNo);
        if (!child || child.deleted) continue;
        for (const text of engine.recordTexts(child, FILES_DATASET)) {
          const doc = JSON.parse(text) as JsonObject;
          if (!tx.object(doc["objectId"] as string)?.deleted) table.putRef(refOfDoc(child.idText, doc));
        }
      }
      for (const { fileId } of pinned) table.setPinned(fileId, true);
    });
  };

  engine.reactTo(FILES_DATASET, followRows);
  engine.reactTo(DELETIONS_DATASET, followDeletions);

  return {
    repair,
    /** The contents that lost a reference since it was asked last. */
    takeDropped(): string[] {
      if (dropped.size === 0) return [];
      const roots = [...dropped];
      dropped = new Set();
      return roots;
    },
  };
}

const refOfDoc = (child: string, doc: JsonObject): Omit<FileRef, "state" | "pinned"> => ({
  fileId: doc["id"] as string,
  child,
  owner: doc["objectId"] as string,
  root: typeof doc["rootCid"] === "string" ? doc["rootCid"] : null,
  size: doc["size"] as number,
  ver: isJsonObject(doc["_ver"]) ? String(doc["_ver"]["id"] ?? "") : "",
  variant: typeof doc["variant"] === "string" ? doc["variant"] : null,
  original: typeof doc["variantOf"] === "string" ? doc["variantOf"] : null,
});
