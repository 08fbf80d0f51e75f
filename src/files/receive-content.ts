import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { concatBytes, freeBytes } from "../base/bytes.ts";
import type { Participant, Turns } from "../base/turns.ts";
import { SvcError } from "../protocol/errors.ts";
import { LIMITS } from "../protocol/limits.ts";
import type { BlobStore } from "./blob-store.ts";

/** A received content: a short one in memory, a longer one in a temporary file that is on the disk. */
export type Received =
  | { readonly kind: "inline"; readonly bytes: Uint8Array; readonly head: Uint8Array }
  | {
      readonly kind: "stored";
      readonly path: string;
      readonly size: number;
      readonly hash: Uint8Array;
      readonly head: Uint8Array;
    };

/** Bytes from the beginning by which the media type is guessed. */
const HEAD_BYTES = 4096;
/** Small reads are written together, up to this many bytes. */
const WRITE_BYTES = 1 << 20;
/** Bytes hashed in one piece, which takes 0.15 ms. */
const HASH_BYTES = 1 << 18;

/**
 * Receives a body of any length: hashes it as it comes and never holds it as a whole. When this resolves, a body that is
 * not short is in a private, fsynced file; when it rejects, nothing is left, and the rest of the body is the caller's.
 * Frees pieces of the body once they are written, so nobody else may hold them. Errors: storage.full.
 */
export async function receiveContent(
  blobs: BlobStore,
  spaceId: string,
  body: ReadableStream<Uint8Array> | null,
  turns: Turns,
): Promise<Received> {
  const reader = body?.getReader();
  const first: Uint8Array[] = [];
  let firstBytes = 0;
  try {
    while (reader && firstBytes < LIMITS.inlineFileBytes) {
      const { done, value } = await reader.read();
      if (done) {
        const bytes = concatBytes(...first);
        return { kind: "inline", bytes, head: bytes };
      }
      first.push(value);
      firstBytes += value.length;
    }
    if (!reader) return { kind: "inline", bytes: new Uint8Array(0), head: new Uint8Array(0) };
    using participant = turns.join();
    return await store(blobs, spaceId, concatBytes(...first), reader, participant);
  } catch (error) {
    throw isFull(error) ? new SvcError("storage.full", { cause: error }) : error;
  } finally {
    reader?.releaseLock();
  }
}

async function store(
  blobs: BlobStore,
  spaceId: string,
  first: Uint8Array,
  reader: ReadableStreamDefaultReader<Uint8Array>,
  participant: Participant,
): Promise<Received> {
  const { path, handle } = await blobs.openTemp(spaceId);
  const hash = createHash("sha256");
  const head = first.slice(0, HEAD_BYTES);
  let waiting: Uint8Array[] = [];
  let waitingBytes = 0;
  let size = 0;
  const write = async (): Promise<void> => {
    for (const part of waiting) {
      for (let at = 0; at < part.length; ) at += (await handle.write(part, at, part.length - at)).bytesWritten;
      freeBytes(part);
    }
    waiting = [];
    waitingBytes = 0;
  };
  const take = async (chunk: Uint8Array): Promise<void> => {
    // It is hashed on this thread, where many uploads at once would leave no time for anything else.
    for (let at = 0; at < chunk.length; at += HASH_BYTES) {
      await participant.turn();
      hash.update(chunk.subarray(at, at + HASH_BYTES));
    }
    size += chunk.length;
    waiting.push(chunk);
    waitingBytes += chunk.length;
    if (waitingBytes >= WRITE_BYTES) await write();
  };
  try {
    await take(first);
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      await take(value);
    }
    await write();
    await handle.sync();
    await handle.close();
    return { kind: "stored", path, size, hash: new Uint8Array(hash.digest()), head };
  } catch (error) {
    await handle.close().catch(() => undefined); // the earlier error is the one to report
    await rm(path, { force: true });
    throw error;
  }
}

/** Whether the error says that the disk is full, or that the quota of this user is. */
export function isFull(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return code === "ENOSPC" || code === "EDQUOT" || code === "EFBIG";
}
