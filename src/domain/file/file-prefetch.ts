import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Service } from "../../base/service.ts";
import type { ContentStore } from "../../files/content-store.ts";
import type { FileContent } from "../../store/file-table.ts";
import type { FileContents } from "./file-contents.ts";

export interface FilePrefetchDeps {
  readonly contents: ContentStore;
  readonly log: Log;
  /** Everything is fetched, not only what somebody asked for. */
  readonly keepsAll: boolean;
  activeIds(): readonly SpaceId[];
  use<R>(spaceId: SpaceId, run: (own: FileContents) => Promise<R>): Promise<R | undefined>;
  onWork(listener: (spaceId: SpaceId) => void): () => void;
  showWork(content: FileContent): { progress(done: number, total: number): void; end(error?: unknown): void };
}

const AT_ONCE = 2;
const PAGE = 100;
/** Nobody may have it yet who is there: tried again when somebody turns up, and now and then. */
const AGAIN_MS = 10_000;
const TICK_MS = 1_000;

/** Fetches what was asked for while nobody had it, what is pinned, and everything where the device keeps all. */
export function createFilePrefetch(deps: FilePrefetchDeps): Service {
  const { contents, log } = deps;
  /** Spaces that may lack something, and when to look at them, by a monotonic clock. */
  const dueMs = new Map<SpaceId, number>();
  const running = new Map<string, Promise<void>>();
  let looking: Promise<void> | undefined;
  let stopped = false;
  let tick: ReturnType<typeof setInterval> | undefined;
  const unfollow: (() => void)[] = [];

  const fetch = async (own: FileContents, row: FileContent): Promise<void> => {
    const content = own.contentOfRoot(row.root);
    if (!content || own.isCached({ root: row.root, size: row.size }) || !contents.sources.anyFor(content)) return;
    const work = deps.showWork(row);
    try {
      await contents.complete(content, (done) => work.progress(done, row.size));
      work.end();
    } catch (error) {
      work.end(error);
      throw error;
    }
  };

  const begin = (spaceId: SpaceId, row: FileContent): void => {
    const name = `${spaceId}/${row.root}`;
    const done = deps
      .use(spaceId, (own) => fetch(own, row))
      .catch((error: unknown) => log.debug("files: one could not be fetched", { err: error, spaceId }))
      .then(() => {
        running.delete(name);
        lookNow();
      });
    running.set(name, done);
  };

  /** Begins what can be begun; answers whether something is lacking. */
  const lookAt = (spaceId: SpaceId, own: FileContents): boolean => {
    let lacks = false;
    const take = (row: FileContent): void => {
      if (own.isCached({ root: row.root, size: row.size })) return;
      lacks = true;
      if (running.size < AT_ONCE && !running.has(`${spaceId}/${row.root}`)) begin(spaceId, row);
    };
    for (const row of own.table.wanted(PAGE)) take(row);
    for (const row of own.table.pinnedContents()) take(row);
    if (deps.keepsAll) {
      let after = "";
      for (let isMore = true; isMore && running.size < AT_ONCE; ) {
        const page = own.table.contents(after, PAGE);
        for (const row of page) if (own.table.isNamed(row.root)) take(row);
        after = page.at(-1)?.root ?? after;
        isMore = page.length === PAGE;
      }
    }
    return lacks;
  };

  const look = async (): Promise<void> => {
    const nowMs = performance.now();
    for (const [spaceId, atMs] of [...dueMs]) {
      if (stopped || running.size >= AT_ONCE) return;
      if (atMs > nowMs) continue;
      dueMs.delete(spaceId);
      const lacks = await deps.use(spaceId, async (own) => lookAt(spaceId, own));
      if (lacks && !dueMs.has(spaceId)) dueMs.set(spaceId, performance.now() + AGAIN_MS);
    }
  };

  function lookNow(): void {
    if (stopped || dueMs.size === 0) return;
    looking ??= look()
      .catch((error: unknown) => log.warn("fetching files failed", { err: error }))
      .finally(() => {
        looking = undefined;
      });
  }

  return {
    name: "file prefetch",
    start() {
      for (const spaceId of deps.activeIds()) dueMs.set(spaceId, 0);
      unfollow.push(
        deps.onWork((spaceId) => {
          dueMs.set(spaceId, 0);
          lookNow();
        }),
        contents.sources.onChange(() => {
          for (const spaceId of dueMs.keys()) dueMs.set(spaceId, 0);
          lookNow();
        }),
      );
      tick = setInterval(lookNow, TICK_MS);
      tick.unref?.();
      lookNow();
    },
    async stop() {
      stopped = true;
      clearInterval(tick);
      for (const stop of unfollow) stop();
      await looking;
      // What is under way ends with the sources, or with the store of contents.
    },
  };
}
