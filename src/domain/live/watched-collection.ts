import type { TouchedRecord } from "../../change/fold/commit-batch.ts";
import { OBJECTS_COLLECTION } from "../../store/rows/row-table.ts";
import { Audience } from "./audience.ts";
import type { CollectionReader } from "./collection-reader.ts";
import type { LiveRecord } from "./live-record.ts";
import type { LiveCollection, LiveRequest } from "./live-request.ts";
import { LiveWindow, type Reserve } from "./live-window.ts";
import { WindowIndex } from "./window-index.ts";
import { windowKey } from "./window-key.ts";

/** A window with its subscribers. */
export interface WatchedWindow {
  readonly key: string;
  readonly collection: WatchedCollection;
  readonly window: LiveWindow;
  readonly audience: Audience;
  /** Set while its rows are being read by a reader, or wait for one. Rejects when that fails and the window has ended. */
  refilling?: Promise<void> | undefined;
}

/** A collection that someone watches, with its windows. */
export interface WatchedCollection {
  readonly id: LiveCollection;
  readonly reader: CollectionReader;
  readonly reserve: Reserve;
  readonly index: WindowIndex<WatchedWindow>;
  readonly windowByKey: Map<string, WatchedWindow>;
  /** Its object was deleted; what the store still holds is not shown to anybody. */
  deleted: boolean;
}

export function createWatchedCollection(
  id: LiveCollection,
  reader: CollectionReader,
  reserve: Reserve,
): WatchedCollection {
  return { id, reader, reserve, index: new WindowIndex(), windowByKey: new Map(), deleted: false };
}

export function collectionKey(id: LiveCollection): string {
  return id === "objects" ? id : `${id.objectId}\0${id.dataset}`;
}

/** The key of the collection that a touched record belongs to. */
export function touchedKey({ collectionId, object, dataset }: TouchedRecord): string {
  return collectionId === OBJECTS_COLLECTION ? "objects" : `${object}\0${dataset}`;
}

/** Returns the window of a request: one that others watch already, or a new one, which is short until it was read. */
export function windowOf(collection: WatchedCollection, request: LiveRequest): WatchedWindow {
  const { filter, sort, limit, offset, terms } = request;
  const key = windowKey(request);
  const known = collection.windowByKey.get(key);
  if (known) return known;
  const window = new LiveWindow({ filter, sort, limit, offset }, terms, collection.reader, collection.reserve);
  const watched: WatchedWindow = { key, collection, window, audience: new Audience() };
  collection.windowByKey.set(key, watched);
  collection.index.add(watched, filter);
  return watched;
}

export function dropWindow(watched: WatchedWindow): void {
  const { index, windowByKey } = watched.collection;
  index.remove(watched);
  if (windowByKey.get(watched.key) === watched) windowByKey.delete(watched.key);
}

/** Groups the records of a commit by the windows that they may concern. */
export function recordsByWindow(
  { index }: WatchedCollection,
  records: Iterable<LiveRecord>,
): Map<WatchedWindow, LiveRecord[]> {
  const found = new Map<WatchedWindow, LiveRecord[]>();
  for (const record of records) {
    if (record.before === record.doc) continue;
    index.visitCandidates(record, (watched) => {
      if (!watched.window.concerns(record)) return;
      const those = found.get(watched);
      if (those) those.push(record);
      else found.set(watched, [record]);
    });
  }
  return found;
}
