import type { SearchHit } from "../../protocol/search.ts";
import { isDamage } from "../../store/database/database.ts";
import { type IndexStore, openIndexStore, type StoredUnit } from "../../store/search/index-store.ts";
import { openSpaceSource, type SpaceSource } from "../../store/search/space-source.ts";
import { openVectorTable, type VectorTable } from "../../store/search/vector-table.ts";
import { excerptOf, highlightsOf } from "../text/highlight.ts";
import { type Found, type Fused, fuseRanks } from "../text/rank-fusion.ts";
import { type ParsedSearch, parseSearch, searchText, unitsToSearch } from "../text/text-search.ts";
import { createIndexFollower } from "./index-follower.ts";
import type { IndexAnswer, IndexFiles, IndexQuery, VectorSide } from "./index-protocol.ts";
import { indexTokens, tokensFingerprint } from "./index-tokens.ts";
import type { SearchConfig } from "./search-config.ts";

/** The index always asks for at least this many candidates, because some of them may turn out to be gone. */
const LEAST_CANDIDATES = 50;
const CATCH_UP_MS = 100;
/** A search looks again when a result was outdated; the third time it leaves the outdated results out. */
const MAX_LOOKS = 3;
/** The key of a mark in an index that was closed before the vectors of deleted texts were dropped. */
const PRUNE_DUE = "prune-due";
/** The BM25 score that maps to one half. */
const HALF_SCORE = 4;

export type SpaceIndex = ReturnType<typeof openSpaceIndex>;

interface Vectors {
  readonly table?: VectorTable;
  /** Why this machine cannot search vectors. */
  readonly unsupported?: string;
}

/** Opens the index of one space. Only one process may have it open. */
export function openSpaceIndex(files: IndexFiles) {
  let source: SpaceSource | undefined;
  const sourceOf = (): SpaceSource => {
    source ??= openSpaceSource(files.source);
    return source;
  };
  const { store, rebuild } = openIndexStore(files.index, { tokenise: indexTokens, fingerprint: tokensFingerprint() });
  const follower = openFollower(store, sourceOf);
  const anew = follower.bind();
  let vectors: Vectors = {};
  let pruneDue = rebuild !== undefined || store.meta(PRUNE_DUE) === "1";

  const vectorsOf = ({ model, nativeDir }: VectorSide): Vectors => {
    const known = vectors.table?.model;
    if (known?.id === model.id && known.dimension === model.dimension) return vectors;
    const opened = openVectorTable(store, model, nativeDir);
    vectors = "table" in opened ? opened : { unsupported: opened.reason };
    return vectors;
  };

  return {
    files,
    /** Why everything is read again; undefined when the index goes on where it stood. */
    reason: rebuild === "damaged" || rebuild === "version" || rebuild === "cuts" ? rebuild : anew,
    setConfig: follower.setConfig,
    step: follower.step,
    state: follower.state,
    cursor: follower.cursor,
    vectors: vectorsOf,
    lacksVectors: store.lacksVectors,
    search(query: IndexQuery, side: VectorSide | undefined, config: SearchConfig): IndexAnswer {
      const isConfigured = tryWrite(() => follower.setConfig(config)) === true;
      const isCaughtUp = tryWrite(() => follower.catchUp(CATCH_UP_MS)) === true;
      const parsed = parseSearch(query.query, query);
      const { table, unsupported } = side && query.vector ? vectorsOf(side) : {};
      if (side && !table) return { hits: [], incomplete: false, unsupported: unsupported ?? "there is no vector" };
      const found = findLive(() => find(query, parsed, table), isCaughtUp);
      const hits = found.slice(0, query.limit).map((each) => toHit(each, parsed, query.maxData));
      const lacksVectors = table !== undefined && table.pendingCount() > 0;
      return { hits, incomplete: !isConfigured || !follower.isWhole() || lacksVectors };
    },
    /**
     * Removes deleted content from the files, and drops vectors of texts that no unit has any more. Returns whether all is done.
     */
    dropDeleted(): boolean {
      pruneDue ||= follower.hasDropped();
      const isDue = pruneDue && follower.isWhole();
      if (isDue) pruneDue = !store.transaction(() => store.pruneEmbeddings());
      if (isDue && !pruneDue && store.meta(PRUNE_DUE) === "1") store.putMeta(PRUNE_DUE, "0");
      store.emptyLog();
      return !(isDue && pruneDue);
    },
    /** Closes the space's database; it is opened again when it is needed. */
    releaseSource(): void {
      source?.close();
      source = undefined;
    },
    close(): void {
      source?.close();
      try {
        if (pruneDue || follower.hasDropped()) store.putMeta(PRUNE_DUE, "1");
      } finally {
        store.close();
      }
    },
  };

  /** Returns the candidates of both lists, best first, before they are checked against the space. */
  function find(query: IndexQuery, parsed: ParsedSearch, table: VectorTable | undefined): Fused[] {
    const most = Math.max(LEAST_CANDIDATES, query.limit + 10);
    const byWords = query.mode === "vector" ? [] : searchText(store, parsed, most);
    const byMeaning =
      table && query.vector ? table.search(query.vector, most, unitsToSearch(store, parsed)) : undefined;
    if (query.mode === "hybrid" && byMeaning) return fuseRanks(byWords, byMeaning);
    if (query.mode === "vector") return (byMeaning ?? []).map((each) => single(each, "vector", cosineShare));
    return byWords.map((each) => single(each, "fts", bm25Share));
  }

  /**
   * Returns the results that still exist unchanged: a result that is gone or was changed is never shown, however far the index is
   * behind.
   */
  function findLive(look: () => Fused[], isCaughtUp: boolean): { unit: StoredUnit; found: Fused }[] {
    for (let looks = 1; ; looks++) {
      const foundById = new Map(look().map((found) => [found.id, found]));
      const units = store.units([...foundById.keys()]);
      const outdated = isCaughtUp ? [] : outdatedAmong(units);
      if (outdated.length > 0 && looks < MAX_LOOKS) {
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
        .map((unit) => ({ unit, found: foundById.get(unit.id)! }))
        .sort((a, b) => b.found.score - a.found.score || compareUnits(a.unit, b.unit));
    }
  }

  /** A full disk or a locked file stops the index from advancing, but not from answering; indexing itself reports the fault. */
  function tryWrite<T>(write: () => T): T | undefined {
    try {
      return write();
    } catch (error) {
      if (isDamage(error)) throw error;
      return undefined;
    }
  }

  /** Returns the units whose sources have log entries that were not followed yet. */
  function outdatedAmong(units: readonly StoredUnit[]): StoredUnit[] {
    const behind = sourceOf().entriesAfter(follower.cursor(), 100_000);
    const rows = new Set(behind.map(({ row }) => row));
    const collections = new Set(behind.map(({ collectionId }) => collectionId));
    return units.filter(({ collectionId, row }) => (row === 0 ? collections.has(collectionId) : rows.has(row)));
  }
}

function openFollower(store: IndexStore, source: () => SpaceSource) {
  try {
    return createIndexFollower({ store, source, fingerprint: tokensFingerprint() });
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

const single = ({ id, score }: Found, list: "fts" | "vector", share: (score: number) => number): Fused => ({
  id,
  score: share(score),
  foundBy: [list],
});

/** BM25 has no upper bound, so this maps it between 0 and 1 and keeps the order. */
const bm25Share = (score: number): number => Math.max(0, score) / (Math.max(0, score) + HALF_SCORE);
const cosineShare = (cosine: number): number => Math.min(1, Math.max(0, cosine));

function toHit({ unit, found }: { unit: StoredUnit; found: Fused }, parsed: ParsedSearch, maxData: number): SearchHit {
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
    score: Math.round(found.score * 1e6) / 1e6,
    foundBy: [...found.foundBy],
    highlights: highlights.map(([start, end]) => [start, end]),
  };
}
