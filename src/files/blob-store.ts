import { constants } from "node:fs";
import { access, type FileHandle, open, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { makeDurableDirectory } from "../base/durable-directory.ts";
import { digestOfCid } from "../crypto/cid.ts";

/** A content on this disk. */
export interface Blob {
  readonly bytes: number;
  /** Unix milliseconds; also the file's mtime, so that it outlives a restart. */
  readonly usedMs: number;
  /** Some of its chunks are missing. */
  readonly partial: boolean;
}

/**
 * The bytes of files on this disk, `<account>/files/<space id>/`: `<rootCid>` is a whole content, plain, and
 * `<rootCid>.hashes` the hashes of its sealed chunks; `.part` and `.have` are a content of which chunks are missing. `tmp-*`
 * is what an upload that was broken off leaves after a crash: the next start removes it.
 *
 * What is here is known from the folder alone: nothing else says it, so nothing else can be wrong about it.
 */
export type BlobStore = Awaited<ReturnType<typeof openBlobStore>>;

const TEMP_PREFIX = "tmp-";
export const HASHES = ".hashes";
export const PART = ".part";
export const HAVE = ".have";
/** For its owner alone. */
export const OWN_MODE = 0o600;
/** The time of use is written so seldom. */
const TOUCH_EVERY_MS = 60_000;

export async function openBlobStore(root: string, clock: Clock) {
  const blobsBySpace = new Map<string, Map<string, Blob>>();
  let temps = 0;
  makeDurableDirectory(root);
  for (const entry of await readdir(root, { withFileTypes: true }))
    if (entry.isDirectory() && digestOfCid(entry.name)) await readSpace(entry.name);

  const dirOf = (spaceId: string): string => join(root, spaceId);
  const pathOf = (spaceId: string, rootCid: string): string => {
    // What stands in a row was written by somebody else: it never becomes a path unless it is a CID.
    if (!digestOfCid(rootCid)) throw new RangeError("a content is named by a CID");
    return join(root, spaceId, rootCid);
  };
  const blobsOf = (spaceId: string): Map<string, Blob> => {
    const known = blobsBySpace.get(spaceId);
    if (known) return known;
    const fresh = new Map<string, Blob>();
    blobsBySpace.set(spaceId, fresh);
    return fresh;
  };
  const note = (spaceId: string, rootCid: string, bytes: number, partial: boolean): void =>
    void blobsOf(spaceId).set(rootCid, { bytes, usedMs: clock.nowMs(), partial });

  /** Takes stock of a space's folder and removes what uploads left that a crash broke off. */
  async function readSpace(spaceId: string): Promise<void> {
    const dir = join(root, spaceId);
    const blobs = new Map<string, Blob>();
    blobsBySpace.set(spaceId, blobs);
    const names = new Set(await readdir(dir));
    for (const name of names) {
      const path = join(dir, name);
      if (name.startsWith(TEMP_PREFIX) || isLeftOver(name, names)) await rm(path, { force: true });
      const rootCid = name.endsWith(PART) ? name.slice(0, -PART.length) : name;
      if (!digestOfCid(rootCid) || blobs.get(rootCid)?.partial === false) continue;
      const facts = await stat(path).catch(() => undefined);
      if (!facts) continue;
      const partial = name.endsWith(PART);
      blobs.set(rootCid, { bytes: partial ? facts.blocks * 512 : facts.size, usedMs: facts.mtimeMs, partial });
    }
  }

  const ensureDir = (spaceId: string): void => void makeDurableDirectory(dirOf(spaceId));

  const dropFiles = async (spaceId: string, rootCid: string, suffixes: readonly string[]): Promise<void> => {
    for (const suffix of suffixes) await rm(pathOf(spaceId, rootCid) + suffix, { force: true });
  };

  return {
    pathOf,
    note,
    ensureDir,

    /** A private temporary file in the space's folder, so that renaming it is one step of one disk. */
    async openTemp(spaceId: string): Promise<{ path: string; handle: FileHandle }> {
      ensureDir(spaceId);
      const path = join(dirOf(spaceId), `${TEMP_PREFIX}${process.pid}-${++temps}-${clock.nowMs().toString(36)}`);
      return { path, handle: await open(path, "wx", OWN_MODE) };
    },

    /**
     * Gives a complete, fsynced temporary file its content's name; durable when it resolves. A crash between leaves a
     * content that nothing refers to, which a sweep finds.
     */
    async adopt(spaceId: string, rootCid: string, temp: string, size: number, digests: Uint8Array): Promise<void> {
      const path = pathOf(spaceId, rootCid);
      ensureDir(spaceId);
      await writeDurably(path + HASHES, digests);
      await rename(temp, path);
      await syncDir(dirOf(spaceId));
      await dropFiles(spaceId, rootCid, [PART, HAVE]);
      note(spaceId, rootCid, size, false);
    },

    get: (spaceId: string, rootCid: string): Blob | undefined => blobsBySpace.get(spaceId)?.get(rootCid),
    list: (spaceId: string): ReadonlyMap<string, Blob> => blobsBySpace.get(spaceId) ?? new Map<string, Blob>(),
    spaces: (): string[] => [...blobsBySpace.keys()],
    /** Everything of all spaces. */
    totalBytes(): number {
      let sum = 0;
      for (const blobs of blobsBySpace.values()) for (const { bytes } of blobs.values()) sum += bytes;
      return sum;
    },

    /**
     * Path of a whole content of this size, or undefined. A copy that somebody removed or cut counts as absent from now on: the
     * disk decides, not what was remembered. It is not deleted here: `size` may be what a lying row says.
     */
    async whole(spaceId: string, rootCid: string, size: number): Promise<string | undefined> {
      const blob = blobsBySpace.get(spaceId)?.get(rootCid);
      if (!blob || blob.partial) return undefined;
      const path = pathOf(spaceId, rootCid);
      const facts = await stat(path).catch(() => undefined);
      if (facts?.isFile()) {
        if (facts.size !== blob.bytes) blobsOf(spaceId).set(rootCid, { ...blob, bytes: facts.size });
        return facts.size === size ? path : undefined;
      }
      blobsBySpace.get(spaceId)?.delete(rootCid);
      return undefined;
    },

    /** It was read just now. */
    async touch(spaceId: string, rootCid: string): Promise<void> {
      const blob = blobsBySpace.get(spaceId)?.get(rootCid);
      const nowMs = clock.nowMs();
      if (!blob || Math.abs(nowMs - blob.usedMs) < TOUCH_EVERY_MS) return;
      blobsOf(spaceId).set(rootCid, { ...blob, usedMs: nowMs });
      const path = pathOf(spaceId, rootCid) + (blob.partial ? PART : "");
      // Removed meanwhile: then there is no time to keep.
      await utimes(path, nowMs / 1000, nowMs / 1000).catch(() => undefined);
    },

    /** Drops a content; answers how many bytes that freed. Absent: 0. */
    async remove(spaceId: string, rootCid: string): Promise<number> {
      const blob = blobsBySpace.get(spaceId)?.get(rootCid);
      blobsBySpace.get(spaceId)?.delete(rootCid);
      await dropFiles(spaceId, rootCid, ["", HASHES, PART, HAVE]);
      return blob?.bytes ?? 0;
    },

    async dropSpace(spaceId: string): Promise<void> {
      if (!digestOfCid(spaceId)) throw new RangeError("a space is named by a CID");
      blobsBySpace.delete(spaceId);
      await rm(dirOf(spaceId), { recursive: true, force: true });
    },

    /** Looks at the folders again: copies may have been put there or taken away by hand. Uploads under way are left alone. */
    async takeStock(spaceId: string): Promise<void> {
      const here = await access(dirOf(spaceId), constants.R_OK).then(
        () => true,
        () => false,
      );
      if (!here) return void blobsBySpace.delete(spaceId);
      for (const [rootCid, blob] of [...blobsOf(spaceId)]) {
        const facts = await stat(pathOf(spaceId, rootCid) + (blob.partial ? PART : "")).catch(() => undefined);
        if (!facts) blobsOf(spaceId).delete(rootCid);
      }
    },
  };
}

/** A crash may part what stands beside a content from the content. */
function isLeftOver(name: string, names: ReadonlySet<string>): boolean {
  const suffix = [HASHES, HAVE].find((each) => name.endsWith(each));
  if (suffix === undefined) return false;
  const rootCid = name.slice(0, -suffix.length);
  return !names.has(rootCid) && !names.has(rootCid + PART);
}

/** All of it is on the disk when this resolves, or the file is as it was. */
async function writeDurably(path: string, bytes: Uint8Array): Promise<void> {
  const handle = await open(path, "w", OWN_MODE);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export async function syncDir(path: string): Promise<void> {
  if (process.platform === "win32") return; // a folder cannot be opened there, and its entries are journalled
  await syncFile(path);
}

export async function syncFile(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
