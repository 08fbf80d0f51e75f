/**
 * Keeps the index of a space in step with its rows: follows their log from a durable cursor, and reads what was there
 * before from the newest on. Both go forward in slices, each one transaction together with its cursor: a crash leaves
 * an index that stands at an earlier place and goes on from there.
 */
import { isJsonObject, type JsonObject } from "../protocol/json.ts";
import type { IndexStore, IndexUnit } from "../store/search/index-store.ts";
import type { LogEntry, SourceRow, SpaceSource } from "../store/search/space-source.ts";
import { configDifference, type SearchConfig } from "./search-config.ts";
import { documentUnits, EDITOR, isIndexed, objectUnits, recordUnits } from "./source-units.ts";

const ENTRIES_A_READ = 500;
const ROWS_A_READ = 200;
const UNITS_A_DROP = 100;
const OBJECTS_COLLECTION = 0;

/** What is still to be read of what was there before, by number, downwards. */
interface Backlog {
  /** Rows with smaller numbers; 0 when all were read. */
  rows: number;
  /** Documents, as collections with smaller numbers. */
  documents: number;
  /** Only rows of objects, or of these datasets; absent: everything. */
  objects?: boolean;
  datasets?: readonly string[];
  /** Datasets whose units go first. */
  dropped?: readonly string[];
  /** The greatest number of a row when it was begun: those that came later are in the log. */
  total: number;
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

  /** Everything is read again, from the newest on; what changes meanwhile is in the log. */
  const beginAnew = (): void => {
    const source = deps.source();
    cursor = source.log().last;
    const total = source.rowCount();
    backlog = { rows: total + 1, documents: Number.MAX_SAFE_INTEGER, total };
    store.putMeta("source", source.incarnation());
    save();
  };

  /** Answers why everything has to be read again, if so. */
  const verify = (): string | undefined => {
    const source = deps.source();
    if (store.meta("source") === undefined) return "new";
    if (store.meta("source") !== source.incarnation()) return "other space";
    const { first, last } = source.log();
    // Entries that were not followed are gone, or the space's database is an older copy.
    return cursor > last || (last > cursor && first > cursor + 1) ? "log" : undefined;
  };

  /** What a transaction that failed changed here is taken back as well. */
  const transaction = <T>(run: () => T): T => {
    try {
      return store.transaction(run);
    } catch (error) {
      load();
      throw error;
    }
  };

  /** Takes over what is to be indexed; what that changes is read again. True, or it throws. */
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

  /** The units of one row as it is now, put in the place of those it had. */
  const setRow = (row: SourceRow): void => {
    if (row.collectionId === OBJECTS_COLLECTION) {
      if (row.doc === null) store.dropObject(row.id);
      else store.setSource(OBJECTS_COLLECTION, row.no, objectUnits(parse(row.doc), config));
      return;
    }
    const collection = deps.source().collection(row.collectionId);
    if (!collection || collection.deleted) return void store.dropCollection(row.collectionId);
    if (collection.dataset === EDITOR || !isIndexed(collection.dataset, config)) return;
    const units: IndexUnit[] =
      row.doc === null ? [] : recordUnits(collection.object, collection.dataset, parse(row.doc), config);
    store.setSource(row.collectionId, row.no, units);
  };

  const setDocument = (no: number): void => {
    const collection = deps.source().collection(no);
    if (!collection || collection.deleted) return void store.dropCollection(no);
    store.setSource(no, 0, documentUnits(collection.object, deps.source().docsOf(no)));
  };

  /** Reads the sources of some entries anew. What is gone from the space goes from the index. */
  const follow = (entries: readonly LogEntry[], seen: { rows: Set<number>; documents: Set<number> }): void => {
    for (const { row: no, collectionId } of entries) {
      if (seen.rows.has(no) || seen.documents.has(collectionId)) continue;
      const collection = collectionId === OBJECTS_COLLECTION ? undefined : deps.source().collection(collectionId);
      if (collection?.dataset === EDITOR || (!collection && collectionId !== OBJECTS_COLLECTION)) {
        seen.documents.add(collectionId);
        setDocument(collectionId);
        continue;
      }
      seen.rows.add(no);
      const row = deps.source().row(no);
      if (row) setRow(row);
      else store.setSource(collectionId, no, []);
    }
  };

  const followLog = (until: number): boolean => {
    for (;;) {
      const entries = deps.source().entriesAfter(cursor, ENTRIES_A_READ);
      if (entries.length === 0) return true;
      // What is read below is as new as the last of these entries. It says nothing of those that come meanwhile.
      const seen = { rows: new Set<number>(), documents: new Set<number>() };
      for (const entry of entries) {
        follow([entry], seen);
        cursor = entry.seq;
        if (performance.now() > until) return false;
      }
    }
  };

  /** A slice of what was there before. */
  const readBacklog = (until: number): void => {
    while (backlog && performance.now() < until) {
      const [dropped, ...rest] = backlog.dropped ?? [];
      if (dropped !== undefined) {
        // Rows that came later are not read here again: what the log brought of them stays.
        if (store.dropDataset(dropped, backlog.total, UNITS_A_DROP) < UNITS_A_DROP) backlog.dropped = rest;
      } else if (backlog.rows > 0) readRows(backlog, until);
      else if (backlog.documents > 0) readDocument(backlog);
      else backlog = undefined;
    }
  };

  const readRows = (left: Backlog, until: number): void => {
    const rows = deps.source().rowsBelow(left.rows, ROWS_A_READ);
    if (rows.length === 0) left.rows = 0;
    for (const row of rows) {
      if (concerns(left, row)) setRow(row);
      left.rows = row.no;
      if (performance.now() > until) return;
    }
  };

  const concerns = ({ objects, datasets }: Backlog, row: SourceRow): boolean => {
    if (datasets === undefined && objects === undefined) return true;
    if (row.collectionId === OBJECTS_COLLECTION) return objects === true;
    return datasets?.includes(deps.source().collection(row.collectionId)?.dataset ?? "") === true;
  };

  const readDocument = (left: Backlog): void => {
    const [no] = deps.source().collectionsBelow(left.documents, EDITOR, 1);
    if (no !== undefined) setDocument(no);
    left.documents = no ?? 0;
  };

  /** Answers whether the log was followed to its end. */
  const goOn = (budgetMs: number): boolean => {
    const until = performance.now() + budgetMs;
    const isCaughtUp = followLog(until);
    if (isCaughtUp) readBacklog(until);
    save();
    return isCaughtUp;
  };

  load();
  return {
    /** Checks that the index belongs to the space as it is; begins anew where it does not, and says why. */
    settle(): string | undefined {
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
    /** Goes on for about so long. Answers whether there is more to do. */
    step: (budgetMs: number): boolean => !transaction(() => goOn(budgetMs)) || backlog !== undefined,
    /** For a search that is to see what was just written. Answers whether the log was followed to its end. */
    catchUp(budgetMs: number): boolean {
      if (backlog === undefined && deps.source().log().last === cursor) return true;
      return transaction(() => goOn(budgetMs));
    },
    /** Brings the sources of some units up to date though the log is not followed that far. */
    refresh(sources: readonly { readonly collectionId: number; readonly row: number }[]): void {
      store.transaction(() => {
        for (const { collectionId, row } of sources) {
          if (row === 0) setDocument(collectionId);
          else follow([{ seq: 0, row, collectionId }], { rows: new Set(), documents: new Set() });
        }
      });
    },
    /** Whether an object is there to be found. */
    isLive(objectId: string): boolean {
      const doc = deps.source().objectRow(objectId)?.doc;
      return typeof doc === "string";
    },
    /** Whether something went since this was last asked. */
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
