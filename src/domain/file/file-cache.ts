import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { createSemaphore } from "../../base/semaphore.ts";
import type { ContentStore } from "../../files/content-store.ts";
import { FILE_DURABLE } from "../../protocol/file-state.ts";
import type { FileContents } from "./file-contents.ts";

export interface FileCacheDeps {
  readonly contents: ContentStore;
  /** Runs over a space that is not closed meanwhile; undefined for one that is not active here. */
  use<R>(spaceId: SpaceId, run: (own: FileContents) => Promise<R>): Promise<R | undefined>;
  /** Spaces that are active on this device. */
  activeIds(): readonly SpaceId[];
  /** Whether the space has ended for this account, so that nothing of it can be asked for again. */
  isOver(spaceId: SpaceId): boolean;
  /** Whether what is there may still be on its way: nothing is swept then. */
  isBootstrapping(): boolean;
  readonly limitBytes: number | undefined;
  readonly log: Log;
}

/** How long nothing may have referred to bytes before they go, in time that the server ran. */
const GRACE_MS = 24 * 60 * 60 * 1000;
/** What one sweep reads anew to find out whether the disk still gives what was written. */
const SCRUB_BYTES = 1 << 30;

/** The bytes of files on this device, over all spaces. */
export type FileCache = ReturnType<typeof createFileCache>;

export function createFileCache(deps: FileCacheDeps) {
  const { contents } = deps;
  const { blobs } = contents;
  let sweptAtMs = performance.now();
  /** Contents in the order in which they were read anew. */
  const scrubbed = new Set<string>();
  /** Each run looks for what it can drop when those before it have dropped theirs. */
  const inTurn = createSemaphore(1);

  /** Drops one content if it can be fetched again and nobody wants it kept. */
  const freeOne = (spaceId: SpaceId, rootCid: string, partial: boolean): Promise<number | undefined> =>
    deps.use(spaceId, async ({ table }) => {
      if (table.isPinned(rootCid) || contents.isIntended(spaceId, rootCid) || contents.isRead(spaceId, rootCid))
        return 0;
      // A part came from somebody who has the whole; a whole that the network does not keep may be the only one.
      if (!partial && table.content(rootCid)?.state !== FILE_DURABLE) return 0;
      return contents.drop(spaceId, rootCid);
    });

  const freeNow = async (bytes: number): Promise<number> => {
    const candidates = blobs
      .spaces()
      .flatMap((spaceId) => [...blobs.list(spaceId)].map(([rootCid, blob]) => ({ spaceId, rootCid, ...blob })))
      .sort((a, b) => a.usedMs - b.usedMs);
    let freed = 0;
    for (const { spaceId, rootCid, partial } of candidates) {
      if (freed >= bytes) break;
      freed += (await freeOne(spaceId as SpaceId, rootCid, partial)) ?? 0;
    }
    return freed;
  };

  const free = (bytes: number): Promise<number> => inTurn(() => freeNow(bytes));

  const scrub = async (): Promise<void> => {
    let left = SCRUB_BYTES;
    for (const spaceId of blobs.spaces() as SpaceId[]) {
      for (const [rootCid, { bytes, partial }] of blobs.list(spaceId)) {
        const name = `${spaceId}/${rootCid}`;
        if (partial || scrubbed.has(name)) continue;
        if (left <= 0) return;
        left -= bytes;
        scrubbed.add(name);
        await deps.use(spaceId, async (own) => {
          const content = own.isProved(rootCid) ? own.contentOfRoot(rootCid) : undefined;
          if (content) await contents.scrub(content);
        });
      }
    }
    scrubbed.clear(); // all were read: it begins anew
  };

  return {
    size: (): number => blobs.totalBytes(),
    /** Drops what was read longest ago, never the only copy nor what is pinned. Answers how many bytes that freed. */
    free,

    /** Drops what nothing has referred to for a day, and copies that the disk damaged. */
    async sweep(): Promise<void> {
      if (deps.isBootstrapping()) return;
      const nowMs = performance.now();
      const elapsedMs = nowMs - sweptAtMs;
      sweptAtMs = nowMs;
      for (const spaceId of deps.activeIds()) {
        try {
          await deps.use(spaceId, (own) => own.sweep(elapsedMs, GRACE_MS));
        } catch (error) {
          deps.log.warn("sweeping the files of a space failed", { err: error, spaceId });
        }
      }
      for (const spaceId of blobs.spaces() as SpaceId[]) if (deps.isOver(spaceId)) await contents.dropSpace(spaceId);
      await scrub();
    },

    /** Keeps the cache within its limit, as far as that is possible. */
    async keepLimit(): Promise<void> {
      if (deps.limitBytes === undefined) return;
      const over = blobs.totalBytes() - deps.limitBytes;
      if (over > 0) await free(over);
    },
  };
}
