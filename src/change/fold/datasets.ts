import type { RowTable } from "../../store/rows/row-table.ts";
import { OBJECTS_COLLECTION } from "../../store/rows/row-table.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { ObjectEntry } from "../graph/object-cache.ts";

/** The dataset that holds a row for each object of the space. */
export const OBJECTS_DATASET = "objects";

/** The collection of an object's dataset, or undefined where nothing was ever written to it. */
export function findCollection(
  store: Pick<SpaceStore, "findDatasetNo"> & { rows: Pick<RowTable, "findCollectionId"> },
  object: Pick<ObjectEntry, "no">,
  dataset: string,
): number | undefined {
  if (dataset === OBJECTS_DATASET) return OBJECTS_COLLECTION;
  const no = store.findDatasetNo(dataset);
  return no === undefined ? undefined : store.rows.findCollectionId(object.no, no);
}

/** The same, made if it is not there. */
export function collectionOf(
  store: Pick<SpaceStore, "datasetNo"> & { rows: Pick<RowTable, "collectionId"> },
  object: Pick<ObjectEntry, "no">,
  dataset: string,
): number {
  if (dataset === OBJECTS_DATASET) return OBJECTS_COLLECTION;
  return store.rows.collectionId(object.no, store.datasetNo(dataset));
}
