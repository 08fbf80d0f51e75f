import type { SearchHit } from "../protocol/search.ts";
import { type IndexStore, isDamage, openIndexStore, type StoredUnit } from "../store/search/index-store.ts";
import { openSpaceSource, type SpaceSource } from "../store/search/space-source.ts";
import { excerptOf, highlightsOf } from "./highlight.ts";
import { CUT_FINGERPRINT, cutText } from "./index-cut.ts";
import { createIndexFollower } from "./index-follower.ts";
import type { IndexAnswer, IndexPlace, IndexQuery } from "./index-protocol.ts";
import type { SearchConfig } from "./search-config.ts";
import { type ParsedSearch, parseSearch, searchText } from "./text-search.ts";

/** Fewer candidates than this are never asked for: some of them may turn out to be gone. */
const LEAST_CANDIDATES = 50;
const CATCH_UP_MS = 40;
/** A search looks again when what it found was outdated; a third time it leaves out what is. */
const MAX_LOOKS = 3;
/** BM25 that counts for a half. */
const HALF_SCORE = 4;

export type SpaceIndex = ReturnType<typeof openSpaceIndex>;

/** The index of one space, open. All of it belongs to one thread. */
export function openSpaceIndex(place: IndexPlace) {
  let source: SpaceSource | undefined;
  const sourceOf = (): SpaceSource => {
    source ??= openSpaceSource(place.source);
    return source;
  };
  const { store, rebuild } = openIndexStore(place.index, { cut: cutText, fingerprint: CUT_FINGERPRINT });
  const follower = openFollower(store, sourceOf);
  const anew = follower.settle();

  return {
    place,
    /** Why everything is read again; undefined when the index goes on where it stood. */
    reason: rebuild === "damaged" || rebuild === "version" || rebuild === "cuts" ? rebuild : anew,
    setConfig: (config: SearchConfig) => follower.setConfig(config),
    step: follower.step,
    state: follower.state,
    cursor: follower.cursor,
    search(query: IndexQuery): IndexAnswer {
      const isCaughtUp = tryWrite(() => follower.catchUp(CATCH_UP_MS)) === true;
      const parsed = parseSearch(query.query, query);
      const find = () => searchText(store, parsed, Math.max(LEAST_CANDIDATES, query.limit + 10));
      const found = findLive(find, isCaughtUp);
      const hits = found.slice(0, query.limit).map(({ unit, score }) => toHit(unit, score, parsed, query.maxData));
      return { hits, incomplete: !follower.isWhole() };
    },
    settleFiles: () => store.settleFiles(),
    /** The space's database is let go: it is opened again when it is needed. */
    releaseSource(): void {
      source?.close();
      source = undefined;
    },
    close(): void {
      source?.close();
      store.close();
    },
  };

  /** What was found and is there: of what is gone, or was changed, nothing is shown, however far the index is behind. */
  function findLive(find: () => { id: number; score: number }[], isCaughtUp: boolean) {
    for (let look = 1; ; look++) {
      const scores = new Map(find().map(({ id, score }) => [id, score]));
      const units = store.units([...scores.keys()]);
      const outdated = isCaughtUp ? [] : outdatedAmong(units);
      if (outdated.length > 0 && look < MAX_LOOKS) {
        tryWrite(() => follower.refresh(outdated));
        continue;
      }
      const gone = new Set(outdated);
      const liveObjects = new Map<string, boolean>();
      const isLive = (object: string): boolean => {
        const known = liveObjects.get(object) ?? follower.isLive(object);
        liveObjects.set(object, known);
        return known;
      };
      return units
        .filter((unit) => !gone.has(unit) && isLive(unit.object))
        .map((unit) => ({ unit, score: scores.get(unit.id) ?? 0 }))
        .sort((a, b) => b.score - a.score || compareUnits(a.unit, b.unit));
    }
  }

  /** A full disk or a locked file keeps the index from going on, not from answering; indexing itself reports it. */
  function tryWrite<T>(write: () => T): T | undefined {
    try {
      return write();
    } catch (error) {
      if (isDamage(error)) throw error;
      return undefined;
    }
  }

  /** Units whose sources the log has entries about that were not followed yet. */
  function outdatedAmong(units: readonly StoredUnit[]): StoredUnit[] {
    const behind = sourceOf().entriesAfter(follower.cursor(), 100_000);
    const rows = new Set(behind.map(({ row }) => row));
    const colls = new Set(behind.map(({ coll }) => coll));
    return units.filter(({ coll, row }) => (row === 0 ? colls.has(coll) : rows.has(row)));
  }
}

function openFollower(store: IndexStore, source: () => SpaceSource) {
  try {
    return createIndexFollower({ store, source, fingerprint: CUT_FINGERPRINT });
  } catch (error) {
    store.close();
    throw error;
  }
}

function compareUnits(a: StoredUnit, b: StoredUnit): number {
  return (
    compare(a.object, b.object) ||
    compare(a.dataset, b.dataset) ||
    compare(a.record, b.record) ||
    a.chunk - b.chunk ||
    compare(a.scope, b.scope)
  );
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function toHit(unit: StoredUnit, score: number, parsed: ParsedSearch, maxData: number): SearchHit {
  const ranges = highlightsOf(unit.text, [...parsed.terms, ...parsed.required]);
  const { data, dataOffset, dataTotal, highlights } = excerptOf(unit.text, ranges, maxData);
  return {
    scope: unit.scope,
    objectId: unit.object,
    dataset: unit.dataset,
    recordId: unit.record,
    ...(unit.chunk > 0 ? { chunk: unit.chunk } : {}),
    data,
    ...(dataOffset > 0 ? { dataOffset } : {}),
    dataTotal,
    score: shareOf(score),
    foundBy: ["fts"],
    highlights: highlights.map(([start, end]) => [start, end]),
  };
}

/** BM25 has no upper bound: brought between 0 and 1, in the same order. */
function shareOf(score: number): number {
  return Math.round((Math.max(0, score) / (Math.max(0, score) + HALF_SCORE)) * 1e6) / 1e6;
}
