import type { Json, JsonObject } from "../../protocol/json.ts";
import { DamagedRowError } from "../../protocol/storage-fault.ts";
import { OBJECTS_COLLECTION, type StoredRow } from "../../store/rows/row-table.ts";
import { ROW_ABSENT, ROW_LIVE, ROW_TOMBSTONE, type RowState } from "../../store/rows/row-types.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { OnRepair } from "../codec/ports.ts";
import type { ObjectCache, ObjectEntry } from "../graph/object-cache.ts";
import { collectionOf, OBJECTS_DATASET } from "./datasets.ts";
import { diffDocs } from "./doc-diff.ts";
import { overlayLocal } from "./local-overlay.ts";
import type { ObjectDeletions } from "./object-deletions.ts";
import type { Projection } from "./projection.ts";
import { rowStateOf } from "./row-writer.ts";

interface RowRepairDeps {
  store: SpaceStore;
  objects: ObjectCache;
  projection: Pick<Projection, "foldWhole" | "stamped" | "tombstoneText">;
  deletions: Pick<ObjectDeletions, "deletionOf">;
  onRepair: OnRepair;
}

/** What a row is of, by the changes that touched it. */
interface Origin {
  object: ObjectEntry;
  dataset: string;
  collectionId: number;
  id: string;
}

/**
 * Makes a row that the disk changed what its changes make of it, at once, wherever it is met: within a write as a part of it.
 * Nobody is told but the log, for it is what it was.
 */
export function createRowRepair({ store, objects, projection, deletions, onRepair }: RowRepairDeps) {
  const { rows } = store;

  const originOf = (row: StoredRow): Origin | undefined => {
    const touched = rows.origin(row.no);
    const found = touched ?? rows.collectionInfo(row.collectionId);
    const isObjects = !touched && row.collectionId === OBJECTS_COLLECTION;
    const object = isObjects ? objects.byText(row.id) : found && objects.byNo(found.objectNo);
    if (!object || !found) return undefined;
    const dataset = isObjects ? OBJECTS_DATASET : store.datasetName(found.datasetNo);
    if (dataset === OBJECTS_DATASET) return { object, dataset, collectionId: OBJECTS_COLLECTION, id: object.idText };
    const id = row.isText && row.doc !== null ? ((JSON.parse(row.doc) as JsonObject)["id"] as string) : row.id;
    return { object, dataset, collectionId: collectionOf(store, object, dataset), id };
  };

  /** The row's text without local fields, and its position in the order of its changes. */
  const foldedOf = (row: StoredRow, { object, dataset, id }: Origin) => {
    const isObject = dataset === OBJECTS_DATASET;
    const deletion = isObject && object.deleted ? deletions.deletionOf(object) : undefined;
    const { state, at, ops } = projection.foldWhole(row.no, id, object);
    const position = { lamport: at.lamport, change: at.change, ops };
    if (deletion)
      return { ...position, state: ROW_TOMBSTONE as RowState, text: projection.tombstoneText(object, deletion) };
    if (state.kind === "absent") return { ...position, state: ROW_ABSENT as RowState, text: null };
    const text = JSON.stringify(state.doc);
    return {
      ...position,
      state: rowStateOf(state),
      text: isObject && state.kind === "live" ? projection.stamped(object, text) : text,
    };
  };

  /** The fields that only this device has: as they are stored beside the row, or else what the row has more than its changes. */
  const localFields = (row: StoredRow, base: string): Record<string, Json> | undefined => {
    const kept = rows.soundLocalFields(row.no);
    if (kept !== undefined) return JSON.parse(kept) as Record<string, Json>;
    if (!row.isText || row.doc === null) return undefined;
    const more = diffDocs(JSON.parse(base) as JsonObject, JSON.parse(row.doc) as JsonObject);
    return Object.fromEntries(
      more.flatMap(({ type, path, payload }) => (type === "$set" ? [[path.join("."), payload ?? null]] : [])),
    );
  };

  return (no: number): void => {
    const row = rows.unchecked(no);
    if (!row) return;
    const origin = originOf(row);
    if (!origin) throw new DamagedRowError(no);
    const { object, dataset, collectionId, id } = origin;
    let isLocalLost = false;
    store.db.transaction(() => {
      if (rows.absorbTwin(no, collectionId, id)) rows.addLive(collectionId, -1);
      const { state, text, ...position } = foldedOf(row, origin);
      const fields = row.hasLocal && state === ROW_LIVE && text !== null ? localFields(row, text) : undefined;
      isLocalLost = row.hasLocal && state === ROW_LIVE && fields === undefined;
      const doc = fields && text !== null ? overlayLocal(text, fields) : text;
      rows.restore({ no, collectionId, id, doc, state, ...position });
      if (fields && text !== null && Object.keys(fields).length > 0) rows.putLocal(no, text, JSON.stringify(fields));
      else if (row.hasLocal) rows.dropLocal(no);
    })();
    onRepair("record.row", {
      objectId: object.idText,
      dataset,
      recordId: id,
      ...(isLocalLost ? { lost: "local_fields" } : {}),
    });
  };
}
