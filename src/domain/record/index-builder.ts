/**
 * Makes and drops the indexes of a space, one at a time and in slices of a few milliseconds on the commit queue, so that writers
 * and readers are held up no longer than that.
 *
 * From the moment an index is recorded, its triggers keep the key of every row that is written, and filling adds the keys that
 * rows have at that moment. Whatever happens in between, each row has the one key it should. After a crash, the next open fills
 * an unfinished index again from the beginning, and goes on dropping one that was being dropped.
 */
import type { Log } from "../../base/log.ts";
import type { ChangeEngine } from "../../change/space-engine.ts";
import { SvcError } from "../../protocol/errors.ts";
import type { ReaderPool } from "../../query/readers/reader-pool.ts";
import { indexedPathOf } from "../../query/rows/index-key.ts";
import type { QueryIndex } from "../../store/rows/query-index-table.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { LongWork, StartLongWork } from "../process/port.ts";

const SLICE_MS = 2.5;
/** So many rows are filled by one statement; after it the clock is read. */
const ROWS_AT_ONCE = 32;
const DROPPED_A_SLICE = 500;

export interface IndexBuilderDeps {
  readonly engine: Pick<ChangeEngine, "background" | "spaceId">;
  readonly tables: Pick<SpaceStore, "queryIndexes" | "rows" | "path">;
  readonly readers: Pick<ReaderPool, "run">;
  readonly startLongWork: StartLongWork;
  readonly log: Log;
  /** How long one slice may take. */
  readonly sliceMs?: number;
  /** Between two slices; the first argument is how long the last one took. */
  readonly rest?: (tookMs: number) => Promise<void>;
}

export interface IndexBuilder {
  /** Continues what an earlier run left unfinished. */
  resume(): void;
  /** Makes an index, after those asked for before. Nothing if there is one, or if the path cannot have one. */
  build(collectionId: number, path: string): void;
  drop(index: QueryIndex): void;
  /** Whether an index of this path is being made or waits to be. */
  isComing(collectionId: number, path: string): boolean;
  /** Indexes that are being made or wait to be. */
  coming(): readonly { readonly collectionId: number; readonly path: string }[];
  busy(): boolean;
  /** Ends after the slice under way; what is not ready is taken up at the next open. */
  close(): Promise<void>;
}

interface Job {
  readonly collectionId: number;
  readonly path: string;
  /** The index to be dropped; absent for one to be made. */
  readonly drop?: QueryIndex;
}

export function createIndexBuilder(deps: IndexBuilderDeps): IndexBuilder {
  const { engine, readers, log, sliceMs = SLICE_MS, rest = restAsLong } = deps;
  const { queryIndexes, rows, path: database } = deps.tables;
  const jobs: Job[] = [];
  let working: Promise<void> | undefined;
  let closed = false;

  const work = async (): Promise<void> => {
    for (let job = jobs[0]; job && !closed; job = jobs[0]) {
      try {
        if (job.drop) await drop(job.drop);
        else await build(job.collectionId, job.path);
      } catch (error) {
        const stopped = closed || (error instanceof SvcError && error.code === "server.unavailable");
        if (!stopped)
          log.error("an index could not be made", { err: error, collectionId: job.collectionId, path: job.path });
      }
      jobs.shift();
    }
    working = undefined;
  };

  const begin = (job: Job): void => {
    if (closed) return;
    jobs.push(job);
    working ??= work();
  };

  const build = async (collectionId: number, path: string): Promise<void> => {
    const index = await noteIndex(collectionId, path);
    if (!index) return;
    const startedAt = performance.now();
    const longWork = deps.startLongWork({
      kind: "index.query",
      title: `Index on ${path.slice(0, 200)}`,
      target: engine.spaceId,
    });
    try {
      longWork.progress(0, rows.liveCount(collectionId));
      const numbers = await readers.run(database, { kind: "keyOrder", collectionId, path });
      if (!(await fillAll(index, numbers, longWork))) return longWork.end();
      longWork.end();
      log.info("index made", {
        collectionId,
        path,
        rows: numbers.length,
        ms: Math.round(performance.now() - startedAt),
      });
    } catch (error) {
      longWork.end(error);
      throw error;
    }
  };

  /** From when this is committed, every row that is written has its key. */
  const noteIndex = (collectionId: number, path: string): Promise<QueryIndex | undefined> =>
    engine.background(() => {
      const begun = queryIndexes.filling().find((each) => each.collectionId === collectionId && each.path === path);
      if (begun || queryIndexes.inUse(collectionId).has(path)) return begun;
      const indexed = indexedPathOf(path);
      // The collection may have gone while this waited.
      if (!indexed || !rows.collectionInfo(collectionId)) return undefined;
      return { no: queryIndexes.add(collectionId, indexed), collectionId, path };
    });

  /** Answers whether the index is in use now; it is not when it was retired meanwhile. */
  const fillAll = async (index: QueryIndex, numbers: Float64Array, longWork: LongWork): Promise<boolean> => {
    for (let at = 0; at <= numbers.length; ) {
      if (closed) return false;
      let tookMs = 0;
      const next = await engine.background(() => {
        const startedAt = performance.now();
        if (!queryIndexes.isFilling(index.no)) return undefined;
        const reached = fillSlice(index, numbers, at, startedAt + sliceMs);
        if (reached === numbers.length) queryIndexes.finish(index);
        tookMs = performance.now() - startedAt;
        return reached;
      });
      if (next === undefined) return false;
      if (next === numbers.length) return true;
      at = next;
      longWork.progress(at, numbers.length);
      await rest(tookMs);
    }
    return false;
  };

  const fillSlice = (index: QueryIndex, numbers: Float64Array, from: number, untilMs: number): number => {
    let at = from;
    while (at < numbers.length) {
      const some = [...numbers.subarray(at, at + ROWS_AT_ONCE)];
      queryIndexes.fill(index.no, some);
      at += some.length;
      if (performance.now() > untilMs) break;
    }
    return at;
  };

  const drop = async (index: QueryIndex): Promise<void> => {
    await engine.background(() => queryIndexes.retire(index));
    log.info("index dropped", { collectionId: index.collectionId, path: index.path });
    while (!closed) {
      const startedAt = performance.now();
      if (await engine.background(() => queryIndexes.dropSome(index.no, DROPPED_A_SLICE))) return;
      await rest(performance.now() - startedAt);
    }
  };

  const coming = () => jobs.filter((job) => !job.drop);
  const isComing = (collectionId: number, path: string) =>
    coming().some((job) => job.collectionId === collectionId && job.path === path);

  return {
    resume() {
      for (const index of queryIndexes.dropping()) begin({ ...index, drop: index });
      for (const { collectionId, path } of queryIndexes.filling()) begin({ collectionId, path });
    },
    build(collectionId, path) {
      if (!isComing(collectionId, path)) begin({ collectionId, path });
    },
    drop: (index) => begin({ collectionId: index.collectionId, path: index.path, drop: index }),
    isComing,
    coming,
    busy: () => working !== undefined,
    async close() {
      closed = true;
      await working;
    },
  };
}

/** As long as the work took: at most half of the server's time goes into it. */
function restAsLong(tookMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(1, tookMs)));
}
