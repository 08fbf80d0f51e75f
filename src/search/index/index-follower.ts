/**
 * Keeps the index of a space in step with its rows: it follows their log from a durable cursor, and reads older rows from the
 * newest on. Both proceed in slices, and each slice is one transaction together with its cursor. A crash therefore leaves an
 * index that stands at an earlier position and goes on from there.
 */
import { isJsonObject, type JsonObject } from "../../protocol/json.ts";
import type { IndexStore, IndexUnit } from "../../store/search/index-store.ts";
import type { LogEntry, SourceCollection, SourceRow, SpaceSource } from "../../store/search/space-source.ts";
import { configDifference, type SearchConfig } from "./search-config.ts";
import { documentUnits, EDITOR, isIndexed, objectUnits, recordUnits } from "./source-units.ts";

const ENTRIES_A_READ = 500;
const ROWS_A_READ = 200;
const UNITS_A_DROP = 100;
const OBJECTS_COLLECTION = 0;

/** Which of the older rows are still to be read, by number, downwards. */
interface Backlog {
  /** Rows with smaller numbers are still to be read; 0 when all were read. */
  rows: number;
  /** Documents in collections with smaller numbers are still to be read. */
  documents: number;
  /** Only rows of objects, or of these datasets; absent: everything. */
  objects?: boolean;
  datasets?: readonly string[];
  /** Datasets whose units are removed first. */
  dropped?: readonly string[];
  /** The greatest row number when the backlog began: later rows are in the log. */
  total: number;
}

/** Sources that were read behind a page of the log or of rows, and are at least as new as what is on it. */
class ReadSources {
  readonly rows = new Set<number>();
  readonly documents = new Set<number>();
  readonly collections = new Map<number, SourceCollection | undefined>();
}

export interface FollowerState {
  /** Entries and rows that are still to be read. */
  readonly left: number;
  readonly total: number;
}

export function createIndexFollower(deps: { store: IndexStore; source: () => SpaceSource; fingerprint: string }) {
  const { store } = deps;
  let config: SearchConfig = { properties: {}, datasets: {} };
  let cursor = 0;
  let backlog: Backlog | undefined;

  const load = (): void => {
    cursor = Number(store.meta("cursor") ?? "0");
    const stored = store.meta("backlog");
    backlog = stored === undefined || stored === "" ? undefined : (JSON.parse(stored) as Backlog);
    const known = store.meta("config");
    if (known !== undefined) config = JSON.parse(known) as SearchConfig;
  };

  const save = (): void => {
    store.putMeta("cursor", String(cursor));
    store.putMeta("backlog", backlog ? JSON.stringify(backlog) : "");
  };

  /** Begins to read everything again, from the newest row on; the log brings what changes meanwhile. */
  const beginAnew = (): void => {
    const source = deps.source();
    cursor = source.log().last;
    const total = source.rowCount();
    backlog = { rows: total + 1, documents: Number.MAX_SAFE_INTEGER, total };
    store.putMeta("source", source.incarnation());
    save();
  };

  /** Returns the reason if everything has to be read again; otherwise undefined. */
  const verify = (): string | undefined => {
    const source = deps.source();
    if (store.meta("source") === undefined) return "new";
    if (store.meta("source") !== source.incarnation()) return "other space";
    const { first, last } = source.log();
    // Either log entries that were not followed are gone, or the space's database is an older copy.
    return cursor > last || (last > cursor && first > cursor + 1) ? "log" : undefined;
  };

  /** Runs a transaction; if it fails, the state in memory is taken back as well. */
  const transaction = <T>(run: () => T): T => {
    try {
      return store.transaction(run);
    } catch (error) {
      load();
      throw error;
    }
  };

  /** Sets what is to be indexed, and has everything read again that the change affects. Returns true, or throws. */
  const setConfig = (next: SearchConfig): true => {
    const { objects, datasets } = configDifference(config, next);
    if (!objects && datasets.length === 0) return true;
    return transaction(() => {
      config = next;
      store.putMeta("config", JSON.stringify(next));
      const isEmpty = cursor === 0 && store.count() === 0 && backlog === undefined;
      const isWhole = backlog !== undefined && backlog.datasets === undefined && backlog.objects === undefined;
      if (isEmpty) return true;
      const total = deps.source().rowCount();
      const before = isWhole ? undefined : backlog;
      backlog = {
        rows: total + 1,
        documents: isWhole ? Number.MAX_SAFE_INTEGER : (before?.documents ?? 0),
        total,
        ...(isWhole
          ? {}
          : {
              objects: objects || before?.objects === true,
              datasets: [...new Set([...(before?.datasets ?? []), ...datasets])],
            }),
        dropped: [...new Set([...(backlog?.dropped ?? []), ...datasets])],
      };
      save();
      return true;
    });
  };

  /** Replaces the units of one row with those of its current content. `collection`: its own, if there is one. */
  const setRow = (row: SourceRow, collection: SourceCollection | undefined): void => {
    if (row.collectionId === OBJECTS_COLLECTION) {
      if (row.doc === null) store.dropObject(row.id);
      else store.setSource(OBJECTS_COLLECTION, row.no, objectUnits(parse(row.doc), config));
      return;
    }
    if (!collection || collection.deleted) return void store.dropCollection(row.collectionId);
    const units: IndexUnit[] =
      row.doc === null ? [] : recordUnits(collection.object, collection.dataset, parse(row.doc), config);
    store.setSource(row.collectionId, row.no, units);
  };

  /** The collection of a row, read once for a page however many rows of it are on that. */
  const collectionOf = (no: number, { collections }: ReadSources): SourceCollection | undefined => {
    if (no === OBJECTS_COLLECTION) return undefined;
    if (!collections.has(no)) collections.set(no, deps.source().collection(no));
    return collections.get(no);
  };

  /** Whether rows of a collection have no units of their own: most rows of a space may be such that nothing finds. */
  const isPassedOver = (collection: SourceCollection | undefined): boolean =>
    collection !== undefined &&
    !collection.deleted &&
    (collection.dataset === EDITOR || !isIndexed(collection.dataset, config));

  const setDocument = (no: number): void => {
    const collection = deps.source().collection(no);
    if (!collection || collection.deleted) return void store.dropCollection(no);
    store.setSource(no, 0, documentUnits(collection.object, deps.source().docsOf(no)));
  };

  /** Reads the source of an entry anew. What is gone from the space is removed from the index. */
  const follow = ({ row: no, collectionId }: Omit<LogEntry, "seq">, read: ReadSources): void => {
    if (read.rows.has(no) || read.documents.has(collectionId)) return;
    const collection = collectionOf(collectionId, read);
    if (collection?.dataset === EDITOR || (!collection && collectionId !== OBJECTS_COLLECTION)) {
      read.documents.add(collectionId);
      setDocument(collectionId);
      return;
    }
    if (isPassedOver(collection)) return;
    const row = deps.source().row(no);
    // Another record's by now: its own entry follows.
    if (row?.collectionId !== collectionId) return void store.setSource(collectionId, no, []);
    read.rows.add(no);
    setRow(row, collection);
  };

  const followLog = (until: number): boolean => {
    for (;;) {
      const entries = deps.source().entriesAfter(cursor, ENTRIES_A_READ);
      if (entries.length === 0) return true;
      // What is read below is as new as the last of these entries, and may lack the changes of later ones.
      const read = new ReadSources();
      for (const entry of entries) {
        follow(entry, read);
        cursor = entry.seq;
        if (performance.now() > until) return false;
      }
    }
  };

  /** Reads older rows until the given time. */
  const readBacklog = (until: number): void => {
    while (backlog && performance.now() < until) {
      const [dropped, ...rest] = backlog.dropped ?? [];
      if (dropped !== undefined) {
        // Later rows are not read again here, so the units that the log brought for them stay.
        if (store.dropDataset(dropped, backlog.total, UNITS_A_DROP) < UNITS_A_DROP) backlog.dropped = rest;
      } else if (backlog.rows > 0) readRows(backlog, until);
      else if (backlog.documents > 0) readDocument(backlog);
      else backlog = undefined;
    }
  };

  const readRows = (left: Backlog, until: number): void => {
    const rows = deps.source().rowsBelow(left.rows, ROWS_A_READ);
    if (rows.length === 0) left.rows = 0;
    const read = new ReadSources();
    for (const row of rows) {
      const collection = collectionOf(row.collectionId, read);
      if (!isPassedOver(collection) && concerns(left, row, collection)) setRow(row, collection);
      left.rows = row.no;
      if (performance.now() > until) return;
    }
  };

  const concerns = (
    { objects, datasets }: Backlog,
    row: SourceRow,
    collection: SourceCollection | undefined,
  ): boolean => {
    if (datasets === undefined && objects === undefined) return true;
    if (row.collectionId === OBJECTS_COLLECTION) return objects === true;
    return datasets?.includes(collection?.dataset ?? "") === true;
  };

  const readDocument = (left: Backlog): void => {
    const [no] = deps.source().collectionsBelow(left.documents, EDITOR, 1);
    if (no !== undefined) setDocument(no);
    left.documents = no ?? 0;
  };

  /** Follows the log, then reads the backlog, for about `budgetMs`. Returns whether the log was followed to its end. */
  const goOn = (budgetMs: number): boolean => {
    const until = performance.now() + budgetMs;
    const isCaughtUp = followLog(until);
    if (isCaughtUp) readBacklog(until);
    save();
    return isCaughtUp;
  };

  load();
  return {
    /** Checks that the index belongs to the current space database. Where it does not, begins anew and returns the reason. */
    bind(): string | undefined {
      const reason = verify();
      if (reason !== undefined)
        store.transaction(() => {
          store.reset(deps.fingerprint);
          store.putMeta("config", JSON.stringify(config));
          beginAnew();
        });
      return reason;
    },
    setConfig,
    /** Works for about `budgetMs`. Returns whether there is more to do. */
    step: (budgetMs: number): boolean => !transaction(() => goOn(budgetMs)) || backlog !== undefined,
    /** Catches up for a search that has to see the latest writes. Returns whether the log was followed to its end. */
    catchUp(budgetMs: number): boolean {
      if (backlog === undefined && deps.source().log().last === cursor) return true;
      return transaction(() => goOn(budgetMs));
    },
    /** Brings the sources of some units up to date before the log is followed that far. */
    refresh(sources: readonly { readonly collectionId: number; readonly row: number }[]): void {
      store.transaction(() => {
        const read = new ReadSources();
        for (const { collectionId, row } of sources) {
          if (row === 0) setDocument(collectionId);
          else follow({ row, collectionId }, read);
        }
      });
    },
    /** Whether an object exists and may be found. */
    isLive(objectId: string): boolean {
      const doc = deps.source().objectRow(objectId)?.doc;
      return typeof doc === "string";
    },
    /** Whether anything was removed since the last call. */
    hasDropped: store.takeDropped,
    cursor: (): number => cursor,
    state(): FollowerState {
      const { last } = deps.source().log();
      return {
        left: last - cursor + (backlog?.rows ?? 0) + (backlog && backlog.documents > 0 ? 1 : 0),
        total: backlog?.total ?? 0,
      };
    },
    isWhole: (): boolean => backlog === undefined && deps.source().log().last === cursor,
  };
}

function parse(doc: string): JsonObject {
  const parsed: unknown = JSON.parse(doc);
  return isJsonObject(parsed as never) ? (parsed as JsonObject) : {};
}
