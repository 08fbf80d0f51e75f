import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { createEvents } from "../base/events.ts";
import type { SpaceId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { createPeriodicWork } from "../base/periodic-work.ts";
import { createRateLimitedLog } from "../base/rate-limited-log.ts";
import type { Service } from "../base/service.ts";
import { createFileCache, type FileCache } from "../domain/file/file-cache.ts";
import { createFileContents, type FileContents } from "../domain/file/file-contents.ts";
import { createFilePrefetch } from "../domain/file/file-prefetch.ts";
import type { LongWork, StartLongWork } from "../domain/process/port.ts";
import { openBlobStore } from "../files/blob-store.ts";
import { createChunkSources } from "../files/chunk-sources.ts";
import { chunkCount } from "../files/chunk-tree.ts";
import type { Content } from "../files/content.ts";
import { createContentSealer } from "../files/content-sealer.ts";
import { type ContentStore, createContentStore } from "../files/content-store.ts";
import { FILE_DURABLE } from "../protocol/file-state.ts";
import type { Space } from "../space/space.ts";
import type { FileContent } from "../store/tables/file-table.ts";
import { createFileBackup } from "../sync/file/file-backup.ts";
import { createNetworkChunks } from "../sync/file/network-chunks.ts";
import { createChunkServer, createPeerChunks } from "../sync/lan/lan-chunks.ts";
import type { PeerLink } from "../sync/lan/peer-link.ts";
import type { NetworkStore } from "../sync/network/network-store.ts";
import { backupSpaceOf } from "./backup-space.ts";

export interface AccountFilesDeps {
  readonly accountDir: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly cacheLimitBytes: number | undefined;
  readonly sweepEveryMs: number | undefined;
  readonly keepsAll: boolean;
  readonly startLongWork: StartLongWork;
  activeIds(): readonly SpaceId[];
  isActive(spaceId: SpaceId): boolean;
  isOver(spaceId: SpaceId): boolean;
  isBootstrapping(): boolean;
  /** Whether many requests are coming in. */
  isBusy(): boolean;
  /** Keeps an active space open while `run` runs. */
  use<R>(spaceId: SpaceId, run: () => Promise<R>): Promise<R>;
}

/** The files of an account: their bytes on this device, and the background work on them. */
export interface AccountFiles {
  readonly contents: ContentStore;
  readonly cache: FileCache;
  /** Workers that sweep when the configuration asks for it, and fetch contents that are wanted. */
  readonly workers: readonly Service[];
  /** Adds the network as a source of chunks; returns the service that backs files up to it. */
  useNetwork(store: NetworkStore): Service;
  /** Adds a peer as a source of chunks, for as long as its link lasts. */
  usePeer(link: PeerLink, techId: SpaceId): void;
  /** Answers peers that ask for chunks. */
  readonly serveChunk: ReturnType<typeof createChunkServer>;
  /** Returns the file contents of a space that was just opened. */
  open(space: Space): FileContents;
  closed(spaceId: SpaceId): void;
  /** Must be called when a space has ended for this account. */
  ended(spaceId: SpaceId): void;
  close(): Promise<void>;
}

/** How soon after a content arrived the cache is checked against its limit. */
const LIMIT_AFTER_MS = 1_000;

export async function createAccountFiles(deps: AccountFilesDeps): Promise<AccountFiles> {
  const { log } = deps;
  const ownBySpace = new Map<SpaceId, FileContents>();
  const events = createEvents<{ work: [spaceId: SpaceId]; grown: [] }>();
  const lies = createRateLimitedLog(log);
  const failed = (error: unknown): void => log.error("work on files failed", { err: error });
  const blobs = await openBlobStore(join(deps.accountDir, "files"), deps.clock);
  const sources = createChunkSources((source, { spaceId, rootCid }) =>
    lies.warn(`${source} ${spaceId}`, "files: a chunk was not what it should be; it is asked for elsewhere", {
      source,
      spaceId,
      rootCid,
    }),
  );
  /** There are more bytes here than before. */
  const grown = (): void => events.emit("grown");
  const use = async <R>(spaceId: SpaceId, run: (own: FileContents) => Promise<R>): Promise<R | undefined> =>
    deps.isActive(spaceId) ? deps.use(spaceId, () => run(ownBySpace.get(spaceId)!)) : undefined;
  const contents = createContentStore({
    blobs,
    sources,
    sealer: createContentSealer(),
    log,
    isBusy: deps.isBusy,
    arrived(content) {
      use(content.spaceId, (own) => own.arrived(content)).catch(failed);
      grown();
    },
    gone: (spaceId, rootCid) => ownBySpace.get(spaceId)?.gone(rootCid),
  });
  const cache = createFileCache({
    contents,
    use,
    activeIds: deps.activeIds,
    isOver: deps.isOver,
    isBootstrapping: deps.isBootstrapping,
    limitBytes: deps.cacheLimitBytes,
    log,
  });
  const limit = createLimitKeeper(cache, failed);
  events.on("grown", limit.keepSoon);
  const onWork = (listener: (spaceId: SpaceId) => void): (() => void) => events.on("work", listener);
  const showWork =
    (kind: string, title: string) =>
    ({ root, size }: Pick<FileContent, "root" | "size">): LongWork => {
      const work = deps.startLongWork({ kind, title, target: root });
      work.progress(0, size); // work that makes no progress from the beginning reports its size, too
      return work;
    };
  /**
   * A content was marked as stored on the network, but one of its chunks is missing there: other devices have to upload it again.
   */
  const missedOnNetwork = ({ spaceId, rootCid }: Content): void => {
    const own = ownBySpace.get(spaceId);
    if (own?.table.content(rootCid)?.state === FILE_DURABLE) own.doubt(rootCid).catch(failed);
  };
  const { sweepEveryMs } = deps;
  const sweep = async (): Promise<void> => {
    await cache.sweep();
    await cache.keepLimit();
  };

  return {
    contents,
    cache,
    workers: [
      ...(sweepEveryMs === undefined
        ? []
        : [createPeriodicWork({ name: "file sweep", everyMs: sweepEveryMs, run: sweep, log })]),
      createFilePrefetch({
        contents,
        log,
        keepsAll: deps.keepsAll,
        activeIds: deps.activeIds,
        use,
        onWork,
        showWork: showWork("file.fetch", "Fetching a file"),
      }),
    ],
    useNetwork(store) {
      sources.add(createNetworkChunks(store, missedOnNetwork));
      store.onState(({ phase }) => {
        if (phase === "online") sources.changed();
      });
      return createFileBackup({
        store,
        contents,
        clock: deps.clock,
        log,
        activeIds: deps.activeIds,
        use: (spaceId, run) => use(spaceId, (own) => run(backupSpaceOf(own))),
        onWork,
        showWork: showWork("file.backup", "Backing up a file"),
      });
    },
    usePeer(link, techId) {
      const forget = sources.add(createPeerChunks(link, techId));
      link.signal.addEventListener("abort", forget, { once: true });
    },
    serveChunk: createChunkServer({
      sealed: (spaceId, { root, level, index }) =>
        use(spaceId, async (own) => {
          const content = own.table.isNamed(root) ? own.contentOfRoot(root) : undefined;
          if (!content || !blobs.get(spaceId, root)) return undefined;
          return { sealed: await contents.sealed(content, { level, index }), chunks: chunkCount(content.size) };
        }),
      copied: (spaceId, root) => {
        use(spaceId, (own) => own.noteElsewhere(root)).catch(failed);
      },
    }),
    open(space) {
      const own = createFileContents({
        space,
        tables: space.store,
        contents,
        onWork: () => {
          events.emit("work", space.id);
          grown();
        },
        onBackgroundError: failed,
      });
      ownBySpace.set(space.id, own);
      return own;
    },
    closed: (spaceId) => void ownBySpace.delete(spaceId),
    ended: (spaceId) => {
      contents.dropSpace(spaceId).catch(failed);
    },
    async close() {
      limit.close();
      await contents.close();
    },
  };
}

/** Keeps the cache within its limit, a moment after more has come. */
function createLimitKeeper(cache: FileCache, failed: (error: unknown) => void) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return {
    keepSoon(): void {
      timer ??= setTimeout(() => {
        timer = undefined;
        cache.keepLimit().catch(failed);
      }, LIMIT_AFTER_MS);
      timer.unref?.();
    },
    close: (): void => clearTimeout(timer),
  };
}
