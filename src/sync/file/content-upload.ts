import { equalBytes } from "../../base/bytes.ts";
import type { LoopLag } from "../../base/loop-lag.ts";
import { sha256 } from "../../crypto/hash.ts";
import { digestAt, levelCounts } from "../../files/chunk-tree.ts";
import type { Content } from "../../files/content.ts";
import { CHUNK_BYTES } from "../../files/content-seal.ts";
import type { ContentStore } from "../../files/content-store.ts";
import { FILE_INFLIGHT, FILE_LIMITED } from "../../protocol/file-state.ts";
import type { ChunkStore, StoredChunk } from "../network/chunk-store.ts";
import type { BackupContent, BackupSpace } from "./backup-space.ts";
import { chunkKeysOf } from "./network-chunks.ts";

export type UploadEnd =
  | { readonly kind: "durable"; readonly stored: StoredChunk }
  | { readonly kind: "full" }
  /** Given up for now: the connection is gone, or what was to be sent is not what it should be. */
  | { readonly kind: "stopped" };

interface ContentUploadDeps {
  readonly chunks: ChunkStore;
  readonly contents: ContentStore;
  readonly lag: LoopLag;
  /** Notes the newest chunk known to be stored. */
  keepMark(own: BackupSpace, stored: StoredChunk): Promise<void>;
  isStopped(): boolean;
}

/** Chunks that are on their way at once. */
const AT_ONCE = 4;
/** When the event loop lags more than this, one chunk is sent at a time, with pauses. */
const BUSY_LAG_MS = 20;
const BUSY_PAUSE_FACTOR = 4;
const BUSY_PAUSE_MAX_MS = 1_000;
/** How often it is written down what was sent, so that a restart goes on from there. */
const NOTE_EVERY_MS = 2_000;
/** Changes go first: a chunk waits for them, but not for ever. */
const CHANGES_FIRST_MS = 3_000;
const CHANGES_AGAIN_MS = 30_000;
const CHANGES_STEP_MS = 50;

/** Sends what the network lacks of a content: its chunks, then the pages over them, the root last. */
export function createContentUpload(deps: ContentUploadDeps) {
  const { chunks, contents, lag } = deps;

  /** When changes of a space that wait to be sent were waited for last. */
  const waitedMs = new Map<string, number>();

  /** Waits a while for changes that are to be sent; not again soon, in case something else holds them up. */
  const changesFirst = async ({ replica }: BackupSpace, isOver: () => boolean): Promise<void> => {
    const nowMs = performance.now();
    if (nowMs - (waitedMs.get(replica.id) ?? Number.NEGATIVE_INFINITY) < CHANGES_AGAIN_MS) return;
    while (replica.unpublished(1).length > 0 && !isOver()) {
      if (performance.now() - nowMs > CHANGES_FIRST_MS) return void waitedMs.set(replica.id, performance.now());
      await Bun.sleep(CHANGES_STEP_MS);
    }
  };

  const politely = async (own: BackupSpace, isOver: () => boolean): Promise<void> => {
    await changesFirst(own, isOver);
    const lagMs = lag.ms();
    if (lagMs > BUSY_LAG_MS) await Bun.sleep(Math.min(BUSY_PAUSE_MAX_MS, lagMs * BUSY_PAUSE_FACTOR));
  };

  return async (
    own: BackupSpace,
    row: BackupContent,
    content: Content,
    connection: number | undefined,
    onProgress: (done: number, total: number) => void,
  ): Promise<UploadEnd> => {
    const isOver = (): boolean => deps.isStopped() || chunks.connection() !== connection;
    const manifest = await contents.manifest(content);
    if (!manifest) {
      await contents.scrub(content);
      return { kind: "stopped" };
    }
    const keys = chunkKeysOf(content);
    const count = levelCounts(content.size)[0]!;
    const sent = sentChunks(count, row.sent);
    let end: UploadEnd | undefined;
    const failures: unknown[] = [];
    let newest: StoredChunk | undefined;
    let notedMs = performance.now();
    let doneBytes = 0;
    let next = 0;

    /** The mark comes first: earlier chunks are believed to be there only as long as the mark lies in its place. */
    const note = async (): Promise<void> => {
      if (!newest) return;
      notedMs = performance.now();
      await deps.keepMark(own, newest);
      await own.noteSent(row.root, sent.bytes.slice());
    };
    /** Undefined, and `end` says why, when it was not taken. */
    const send = async (sealed: Uint8Array | undefined, digest: Uint8Array): Promise<StoredChunk | undefined> => {
      if (!sealed || !equalBytes(sha256(sealed), digest)) {
        await contents.scrub(content);
        end = { kind: "stopped" };
        return undefined;
      }
      if (isOver()) {
        end = { kind: "stopped" };
        return undefined;
      }
      const stored = await chunks.put(keys, sealed);
      if (stored === "full") {
        end = { kind: "full" };
        return undefined;
      }
      if (own.content(row.root)?.state === FILE_LIMITED)
        await own.setStates(row.root, FILE_INFLIGHT, { attempts: 0, lastErr: "", nextMs: 0 });
      if (!newest || stored.seq > newest.seq) newest = stored;
      return stored;
    };
    const lane = async (): Promise<void> => {
      while (next < count && !end) {
        const index = next++;
        doneBytes += Math.min(CHUNK_BYTES, content.size - index * CHUNK_BYTES);
        if (sent.has(index)) continue;
        await politely(own, isOver);
        if (!(await send(await contents.sealed(content, { level: 0, index }), digestAt(manifest.digests, index))))
          return;
        sent.add(index);
        onProgress(doneBytes, content.size);
        if (performance.now() - notedMs >= NOTE_EVERY_MS) await note();
      }
    };
    const guarded = (): Promise<void> =>
      lane().catch((error: unknown) => {
        failures.push(error);
        end ??= { kind: "stopped" };
      });
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count) }, guarded));
    await note();
    if (failures.length > 0) throw failures[0];
    if (end) return end;
    let stored: StoredChunk | undefined;
    for (const page of manifest.tree.pages.toReversed()) {
      stored = await send(page.sealed, page.digest);
      if (!stored) return end ?? { kind: "stopped" };
    }
    return stored && !isOver() ? { kind: "durable", stored } : { kind: "stopped" };
  };
}

/** One bit for each chunk; the noted bits are believed if there are as many as there are chunks. */
function sentChunks(count: number, noted: Uint8Array | null) {
  const bytes = new Uint8Array(Math.ceil(count / 8));
  if (noted) bytes.set(noted.subarray(0, bytes.length));
  return {
    bytes,
    has: (index: number): boolean => (bytes[index >>> 3]! & (1 << (index & 7))) !== 0,
    add(index: number): void {
      bytes[index >>> 3]! |= 1 << (index & 7);
    },
  };
}
