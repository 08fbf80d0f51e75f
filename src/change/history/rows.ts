import type { JsonObject } from "../../protocol/json.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { findCollection, OBJECTS_DATASET } from "../fold/datasets.ts";
import type { RecordState } from "../fold/record-fold.ts";
import type { HistoryGraph } from "./graph.ts";
import type { Past, Reading } from "./past.ts";

const ROWS_A_READ = 500;

export interface RowRef {
  no: number;
  id: string;
}

/** Returns the names, in their order, of the datasets that the chosen changes of an object touched; hidden ones are left out. */
export function datasetsOf(store: SpaceStore, graph: HistoryGraph, isAsked: (index: number) => boolean): string[] {
  const numbers = new Set<number>();
  for (let index = 0; index < graph.size; index++) {
    if (!graph.isHidden(index) && !numbers.has(graph.datasetNoAt(index)) && isAsked(index))
      numbers.add(graph.datasetNoAt(index));
  }
  return [...numbers].map((no) => store.datasetName(no)).sort();
}

/** One row of an object's dataset, whatever its state is now. */
export function rowOf(store: SpaceStore, reading: Reading, dataset: string, id: string): RowRef | undefined {
  const collectionId = findCollection(store, reading.object, dataset);
  const head = collectionId === undefined ? undefined : store.rows.get(collectionId, id);
  return head && (dataset !== OBJECTS_DATASET || id === reading.object.idText) ? { no: head.no, id } : undefined;
}

/** Every row of an object's dataset by id, whatever its state is now. */
export async function* rowsOf(store: SpaceStore, reading: Reading, dataset: string): AsyncGenerator<RowRef> {
  if (dataset === OBJECTS_DATASET) {
    const row = rowOf(store, reading, dataset, reading.object.idText);
    if (row) yield row;
    return;
  }
  const collectionId = findCollection(store, reading.object, dataset);
  if (collectionId === undefined) return;
  for (let after = ""; ; ) {
    const page = store.history.rowsAfter(collectionId, after, ROWS_A_READ);
    yield* page;
    if (page.length < ROWS_A_READ) return;
    after = page[page.length - 1]!.id;
    await reading.breathe();
  }
}

/**
 * `modifiedAt` of an object's row is not part of its own fold: it follows the newest change that counts, in any dataset. This
 * takes the newest such change of a past.
 */
export async function stampModified(
  store: SpaceStore,
  reading: Reading,
  past: Past,
  version: { lamport: number; id: Uint8Array },
  state: RecordState,
): Promise<void> {
  if (state.kind !== "live") return;
  const modified = await newestCounted(store, reading, past, version);
  if (modified !== undefined) (state.doc as JsonObject)["modifiedAt"] = { $date: new Date(modified).toISOString() };
}

/** Returns the time of the newest change of a past that counts. */
async function newestCounted(
  store: SpaceStore,
  reading: Reading,
  past: Past,
  version: { lamport: number; id: Uint8Array },
): Promise<number | undefined> {
  let position = version;
  for (;;) {
    const page = store.history.countedUpTo(reading.object.no, position, ROWS_A_READ);
    const found = page.find((change) => past.has(change.no));
    if (found) return found.timeMs;
    const last = page[page.length - 1];
    if (!last || page.length < ROWS_A_READ) return undefined;
    position = { lamport: last.lamport, id: last.id };
    await reading.breathe();
  }
}
