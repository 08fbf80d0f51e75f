import type { JsonObject } from "../../protocol/json.ts";
import { ROW_ABSENT, ROW_LIVE, type RowHead, type RowState } from "../../store/rows/row-types.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { ObjectEntry } from "../graph/object-cache.ts";
import { findCollection } from "./datasets.ts";

/** Reads single records as they stand, within a write what it has done so far included. */
export type RecordReader = ReturnType<typeof createRecordReader>;

export function createRecordReader(store: Pick<SpaceStore, "rows" | "findDatasetNo">) {
  const { rows } = store;
  const collectionIdOf = (object: ObjectEntry, dataset: string) => findCollection(store, object, dataset);
  const headOf = (object: ObjectEntry, dataset: string, id: string): RowHead | undefined => {
    const collectionId = collectionIdOf(object, dataset);
    return collectionId === undefined ? undefined : rows.get(collectionId, id);
  };
  const textsOf = (object: ObjectEntry, dataset: string): string[] => {
    const collectionId = collectionIdOf(object, dataset);
    return collectionId === undefined ? [] : rows.docs(collectionId);
  };

  const textOf = (object: ObjectEntry, dataset: string, id: string): string | undefined => {
    const head = headOf(object, dataset, id);
    return head?.state === ROW_LIVE ? (head.doc ?? undefined) : undefined;
  };

  return {
    collectionIdOf,
    record(object: ObjectEntry, dataset: string, id: string): JsonObject | undefined {
      const text = textOf(object, dataset, id);
      return text === undefined ? undefined : (JSON.parse(text) as JsonObject);
    },
    /** The same as its stored JSON text. */
    recordText: textOf,
    /** All live records of a small dataset, by id. */
    records(object: ObjectEntry, dataset: string): JsonObject[] {
      return parsed(textsOf(object, dataset));
    },
    /** The same, each as its stored JSON text. */
    recordTexts: textsOf,
    /** Where the last object stands that lies below another (`nav`); undefined when none does. */
    lastPosition: rows.lastPosition,
    /** Those of them that have device-local fields, in the order in which they came. */
    recordsWithLocal(object: ObjectEntry, dataset: string): JsonObject[] {
      const collectionId = collectionIdOf(object, dataset);
      return collectionId === undefined ? [] : parsed(rows.docsWithLocal(collectionId));
    },
    /** Is the record there at all, and how? */
    recordState(object: ObjectEntry, dataset: string, id: string): "absent" | "live" | "tombstone" {
      const head = headOf(object, dataset, id);
      return !head || head.state === ROW_ABSENT ? "absent" : head.state === ROW_LIVE ? "live" : "tombstone";
    },
    /** The same of many, as the store has them: those that never were are left out. */
    recordStates(object: ObjectEntry, dataset: string, ids: readonly string[]): Map<string, RowState> {
      const collectionId = collectionIdOf(object, dataset);
      return collectionId === undefined ? new Map() : rows.statesOf(collectionId, ids);
    },
  };
}

const parsed = (texts: readonly string[]): JsonObject[] => texts.map((text) => JSON.parse(text) as JsonObject);
