import { constants } from "node:fs";
import { access, type FileHandle, open, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { makeDurableDirectory } from "../base/durable-directory.ts";
import { digestOfCid } from "../crypto/cid.ts";

/** A content that is on this disk. */
export interface Blob {
  readonly bytes: number;
  /** Unix milliseconds; also stored as the file's mtime, so that it survives a restart. */
  readonly usedMs: number;
  /** Some of its chunks are missing. */
  readonly partial: boolean;
}

/**
 * The bytes of files on this disk, in `<account>/files/<space id>/`: `<rootCid>` is a whole content in plain form,
 * `<rootCid>.hashes` the hashes of its sealed chunks; `.part` and `.have` belong to a content with missing chunks.
 * `tmp-*` is left by an upload that a crash interrupted; the next start removes it.
 *
 * Only the folder says what is here, so no other record can be wrong about it.
 */
export type BlobStore = Awaited<ReturnType<typeof openBlobStore>>;

const TEMP_PREFIX = "tmp-";
export const HASHES = ".hashes";
export const PART = ".part";
export const HAVE = ".have";
/** Readable and writable by the owner only. */
export const OWN_MODE = 0o600;
/** The time of use is written at most this often. */
const NOTED_EVERY_MS = 60_000;

export async function openBlobStore(root: string, clock: Clock) {
  const blobsBySpace = new Map<string, Map<string, Blob>>();
  let temps = 0;
  makeDurableDirectory(root);
  for (const entry of await readdir(root, { withFileTypes: true }))
    if (entry.isDirectory() && digestOfCid(entry.name)) await readSpace(entry.name);

  const dirOf = (spaceId: string): string => join(root, spaceId);
  const pathOf = (spaceId: string, rootCid: string): string => {
    // A row's content was written by somebody else: it never becomes a path unless it is a CID.
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

  /** Lists a space's folder and removes what interrupted uploads left after a crash. */
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

    /** Opens a private temporary file in the space's folder, so that renaming it is one atomic step on one disk. */
    async openTemp(spaceId: string): Promise<{ path: string; handle: FileHandle }> {
      ensureDir(spaceId);
      const path = join(dirOf(spaceId), `${TEMP_PREFIX}${process.pid}-${++temps}-${clock.nowMs().toString(36)}`);
      return { path, handle: await open(path, "wx", OWN_MODE) };
    },

    /**
     * Renames a complete, fsynced temporary file to its content's name; durable when it resolves. A crash in between
     * leaves a content that nothing refers to; a sweep finds it.
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
    /** Bytes of all contents of all spaces. */
    totalBytes(): number {
      let sum = 0;
      for (const blobs of blobsBySpace.values()) for (const { bytes } of blobs.values()) sum += bytes;
      return sum;
    },

    /**
     * Path of a whole content of this size, or undefined. A copy that somebody deleted or truncated counts as absent from
     * now on, because the disk decides and not our memory. It is not deleted here, because `size` may come from a false
     * row.
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

    /** Notes that the content was read just now. */
    async noteUse(spaceId: string, rootCid: string): Promise<void> {
      const blob = blobsBySpace.get(spaceId)?.get(rootCid);
      const nowMs = clock.nowMs();
      if (!blob || Math.abs(nowMs - blob.usedMs) < NOTED_EVERY_MS) return;
      blobsOf(spaceId).set(rootCid, { ...blob, usedMs: nowMs });
      const path = pathOf(spaceId, rootCid) + (blob.partial ? PART : "");
      // If it was removed meanwhile, there is no time to keep.
      await utimes(path, nowMs / 1000, nowMs / 1000).catch(() => undefined);
    },

    /** Removes a content; resolves to the number of bytes freed, 0 when it was absent. */
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

    /**
     * Lists the folders again, because copies may have been added or removed by hand. It leaves uploads under way alone.
     */
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

/** A crash may leave a content's companion files without the content. */
function isLeftOver(name: string, names: ReadonlySet<string>): boolean {
  const suffix = [HASHES, HAVE].find((each) => name.endsWith(each));
  if (suffix === undefined) return false;
  const rootCid = name.slice(0, -suffix.length);
  return !names.has(rootCid) && !names.has(rootCid + PART);
}

/** When this resolves, all bytes are on the disk; when it rejects, the file is unchanged. */
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
  if (process.platform === "win32") return; // Windows cannot open a folder, and it journals folder entries
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
