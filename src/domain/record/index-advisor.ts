/**
 * Decides which indexes a space has, from the queries that it answers: nobody asks for them. A path is wanted when an index of it
 * would have served a query of a large collection. A declared path gets its index at the first such query, any other at the
 * second. When a collection or the space has as many as it may, the least recently used index is dropped, if it was unused for
 * long.
 */
import type { Clock } from "../../base/clock.ts";
import type { JsonObject } from "../../protocol/json.ts";
import type { Filter } from "../../query/filter/filter-types.ts";
import { choosePath } from "../../query/plan/index-choice.ts";
import type { QueryStats } from "../../query/run/run-query.ts";
import type { QueryIndex } from "../../store/rows/query-index-table.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { IndexBuilder } from "./index-builder.ts";

/** In smaller collections reading is so fast that an index does not pay. */
const MIN_ROWS = 2_000;
const USES_DECLARED = 1;
const USES_OTHERWISE = 2;
const MAX_A_COLLECTION = 8;
const MAX_A_SPACE = 32;
/** An index that was used more recently than this is not dropped for another. */
const IDLE_MS = 10 * 60_000;
/** A query that read at most this many rows by an index, or this many for each match, is served well. */
const FEW_CANDIDATES = 2_000;
const FEW_A_MATCH = 4;
/** Rows looked at to tell which of several paths would serve best, and about how long their texts may be together. */
const SAMPLE_ROWS = 100;
const SAMPLE_CHARS = 1 << 19;
const MAX_WANTS = 500;

export interface IndexAdvisorDeps {
  readonly tables: Pick<SpaceStore, "queryIndexes" | "rows" | "db">;
  readonly builder: Pick<IndexBuilder, "build" | "drop" | "isComing" | "coming">;
  readonly clock: Clock;
  /** Whether a type declares the path in the dataset. */
  readonly isDeclared: (dataset: string, path: string) => boolean;
}

/** A query that was answered. */
interface AnsweredQuery {
  readonly collectionId: number;
  readonly dataset: string;
  /** The paths that an index would have served it by (src/query/aggregate/wanted-paths.ts); asked for large collections alone. */
  readonly wanted: () => readonly string[];
  /** What every record it asks for matches, as far as SQL was given it. */
  readonly filter: Filter;
  /** How many records it asks for at most; Infinity is all. */
  readonly window: number;
  readonly stats: Pick<QueryStats, "candidates" | "matches" | "index">;
}

export interface IndexAdvisor {
  observe(query: AnsweredQuery): void;
}

export function createIndexAdvisor(deps: IndexAdvisorDeps): IndexAdvisor {
  const { builder, clock } = deps;
  const { queryIndexes, rows, db } = deps.tables;
  const openedMs = clock.nowMs();
  /** Queries that lacked an index, by collection and path. */
  const wants = new Map<string, number>();
  /** When an index was last used, or asked for, by collection and path. */
  const usedMs = new Map<string, number>();
  /** Indexes that are to be dropped. */
  const leaving = new Set<number>();
  const sample = db.query<{ doc: string }, [number]>(
    `SELECT doc FROM rows WHERE collectionId = ? AND state = 1 ORDER BY id LIMIT ${SAMPLE_ROWS}`,
  );

  const observe = (query: AnsweredQuery): void => {
    const { collectionId, dataset, stats } = query;
    if (rows.liveCount(collectionId) < MIN_ROWS) return;
    const inUse = queryIndexes.inUse(collectionId);
    if (stats.index !== undefined) {
      usedMs.set(keyOf(collectionId, stats.index), clock.nowMs());
      if (isServedWell(stats)) return;
    }
    const wanted = query.wanted();
    // Whether an index that is being made serves the query is known only when it is ready.
    if (wanted.some((path) => builder.isComing(collectionId, path))) return;
    const hot = wanted.filter((path) => !inUse.has(path) && isHot(collectionId, dataset, path));
    const room = hot.length === 0 ? undefined : findRoom(collectionId);
    const path = room && best(query, hot);
    if (path === undefined) return;
    if (room?.drop) drop(room.drop);
    for (const other of wanted) wants.delete(keyOf(collectionId, other));
    usedMs.set(keyOf(collectionId, path), clock.nowMs());
    builder.build(collectionId, path);
  };

  const drop = (index: QueryIndex): void => {
    usedMs.delete(keyOf(index.collectionId, index.path));
    leaving.add(index.no);
    builder.drop(index);
  };

  /** Counts a query that lacked the index; what was wanted longest ago is forgotten first. */
  const isHot = (collectionId: number, dataset: string, path: string): boolean => {
    const key = keyOf(collectionId, path);
    const uses = (wants.get(key) ?? 0) + 1;
    wants.delete(key);
    wants.set(key, uses);
    const [oldest] = wants.keys();
    if (wants.size > MAX_WANTS && oldest !== undefined) wants.delete(oldest);
    return uses >= (deps.isDeclared(dataset, path) ? USES_DECLARED : USES_OTHERWISE);
  };

  const best = ({ collectionId, filter, window }: AnsweredQuery, paths: readonly string[]): string | undefined => {
    if (paths.length < 2) return paths[0];
    const docs: JsonObject[] = [];
    let chars = 0;
    for (const { doc } of sample.iterate(collectionId)) {
      docs.push(JSON.parse(doc) as JsonObject);
      chars += doc.length;
      if (chars > SAMPLE_CHARS) break;
    }
    return choosePath(paths, docs, { filter, window, live: rows.liveCount(collectionId) });
  };

  /** Whether one more index is allowed, and which one has to go for it. */
  const findRoom = (collectionId: number): { drop?: QueryIndex } | undefined => {
    const all = queryIndexes.allInUse().filter(({ no }) => !leaving.has(no));
    const coming = builder.coming();
    const ofCollection = all.filter((index) => index.collectionId === collectionId);
    const isFull =
      ofCollection.length + coming.filter((each) => each.collectionId === collectionId).length >= MAX_A_COLLECTION;
    if (!isFull && all.length + coming.length < MAX_A_SPACE) return {};
    const lastUse = (index: QueryIndex) => usedMs.get(keyOf(index.collectionId, index.path)) ?? openedMs;
    const [idlest] = (isFull ? ofCollection : all).toSorted((a, b) => lastUse(a) - lastUse(b));
    return idlest && clock.nowMs() - lastUse(idlest) >= IDLE_MS ? { drop: idlest } : undefined;
  };

  return { observe };
}

function isServedWell({ candidates, matches }: AnsweredQuery["stats"]): boolean {
  return candidates <= FEW_CANDIDATES || candidates <= FEW_A_MATCH * matches;
}

function keyOf(collectionId: number, path: string): string {
  return `${collectionId} ${path}`;
}
