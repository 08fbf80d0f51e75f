import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Service } from "../../base/service.ts";
import type { ContentStore } from "../../files/content-store.ts";
import type { FileContent } from "../../store/tables/file-table.ts";
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
/** How many contents of a space are tried, one after the other, until they are tried again. */
const TRIES = 64;

/** Rows after a root, in the order of their roots. */
type Page = (after: string, limit: number) => readonly FileContent[];

/**
 * Where looking at a space goes on: in each list of contents after the one that was begun last, and in the list after that one's.
 * So what nobody has keeps nothing else waiting.
 */
interface Progress {
  list: number;
  readonly after: string[];
  /** Roots that were begun since it became time to try again. */
  readonly tried: Set<string>;
}

/** Fetches what was asked for while nobody had it, what is pinned, and everything where the device keeps all. */
export function createFilePrefetch(deps: FilePrefetchDeps): Service {
  const { contents, log } = deps;
  /** Spaces that may lack something, and when to look at them, by a monotonic clock. */
  const dueMs = new Map<SpaceId, number>();
  const running = new Map<string, Promise<void>>();
  const progressBySpace = new Map<SpaceId, Progress>();
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
        if ((progressBySpace.get(spaceId)?.tried.size ?? 0) < TRIES) dueMs.set(spaceId, 0);
        lookNow();
      });
    running.set(name, done);
  };

  /** Begins what can be begun; answers whether something is lacking. */
  const lookAt = (spaceId: SpaceId, own: FileContents): boolean => {
    const { wanted, pinnedContents, contents: all, isNamed } = own.table;
    const lists: Page[] = [wanted, pinnedContents, ...(deps.keepsAll ? [all] : [])];
    const progress = progressBySpace.get(spaceId) ?? { list: 0, after: lists.map(() => ""), tried: new Set<string>() };
    progressBySpace.set(spaceId, progress);
    let lacks = false;
    const { list: first } = progress;
    for (let turn = 0; turn < lists.length && running.size < AT_ONCE; turn++) {
      const list = (first + turn) % lists.length;
      for (const row of rowsFrom(lists[list] as Page, progress.after[list] ?? "")) {
        if (own.isCached({ root: row.root, size: row.size })) continue;
        if (lists[list] === all && !isNamed(row.root)) continue;
        lacks = true;
        if (running.has(`${spaceId}/${row.root}`) || progress.tried.has(row.root)) continue;
        if (running.size >= AT_ONCE || progress.tried.size >= TRIES) break;
        begin(spaceId, row);
        progress.tried.add(row.root);
        progress.after[list] = row.root;
        progress.list = (list + 1) % lists.length;
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
      if (atMs > 0) progressBySpace.get(spaceId)?.tried.clear();
      const lacks = await deps.use(spaceId, async (own) => lookAt(spaceId, own));
      if (lacks && !dueMs.has(spaceId)) dueMs.set(spaceId, performance.now() + AGAIN_MS);
    }
  };

  /** There is a reason to try everything again. */
  const again = (spaceId: SpaceId): void => {
    progressBySpace.get(spaceId)?.tried.clear();
    dueMs.set(spaceId, 0);
  };

  function lookNow(): void {
    if (stopped || dueMs.size === 0) return;
    looking ??= look()
      .catch((error: unknown) => log.warn("fetching files failed", { err: error }))
      .finally(() => {
        looking = undefined;
        // What it began may have ended before it did.
        if (running.size < AT_ONCE && [...dueMs.values()].includes(0)) lookNow();
      });
  }

  return {
    name: "file prefetch",
    start() {
      for (const spaceId of deps.activeIds()) dueMs.set(spaceId, 0);
      unfollow.push(
        deps.onWork((spaceId) => {
          again(spaceId);
          lookNow();
        }),
        contents.sources.onChange(() => {
          for (const spaceId of [...dueMs.keys()]) again(spaceId);
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

/** All rows of a list: those after a root, then those up to it. */
function* rowsFrom(list: Page, after: string): Generator<FileContent> {
  for (const isRound of [false, true]) {
    let at = isRound ? "" : after;
    for (;;) {
      const page = list(at, PAGE);
      for (const row of page) {
        if (isRound && row.root > after) return;
        yield row;
      }
      at = page.at(-1)?.root ?? at;
      if (page.length < PAGE) break;
    }
  }
}
