import type { Json } from "../../protocol/json.ts";
import type { RowTable } from "../../store/rows/row-table.ts";
import { ROW_LIVE } from "../../store/rows/row-types.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { ObjectEntry } from "../graph/object-cache.ts";
import type { Effect } from "./apply-op.ts";
import type { OpenBatch } from "./commit-batch.ts";
import { collectionOf } from "./datasets.ts";
import { overlayLocal } from "./local-overlay.ts";

/** Fields of a record that no change carries, by their dotted paths; undefined removes one. */
export type LocalFields = Readonly<Record<string, Json | undefined>>;

/** Sets device-local fields of records that are live. */
export function createLocalFields(store: Pick<SpaceStore, "datasetNo"> & { rows: RowTable }, batch: OpenBatch) {
  const { rows } = store;
  /** Answers false when there is no such record. */
  return (object: ObjectEntry, dataset: string, recordId: string, fields: LocalFields, versionId: string): boolean => {
    const collectionId = collectionOf(store, object, dataset);
    const head = rows.get(collectionId, recordId);
    if (!head || head.state !== ROW_LIVE || head.doc === null) return false;
    const known = head.hasLocal ? rows.local(head.no) : undefined;
    const base = known?.base ?? head.doc;
    const merged: Record<string, Json> = known ? (JSON.parse(known.fields) as Record<string, Json>) : {};
    const effects: Effect[] = [];
    for (const [path, value] of Object.entries(fields)) {
      if (value === undefined) {
        delete merged[path];
        effects.push({ type: "$unset", path: path.split(".") });
      } else {
        merged[path] = value;
        effects.push({ type: "$set", path: path.split("."), payload: value });
      }
    }
    const doc = overlayLocal(base, merged);
    if (Object.keys(merged).length > 0) rows.putLocal(head.no, base, JSON.stringify(merged));
    else rows.dropLocal(head.no);
    rows.setDoc(head, doc);
    const record = { collectionId, object: object.idText, dataset, recordId, versionId };
    batch.touch({ ...record, before: head.doc, doc, effects, synced: false });
    return true;
  };
}
