import { copyFile, rm } from "node:fs/promises";
import type { SpaceId } from "../base/ids.ts";
import { createKeyedSemaphore } from "../base/keyed-semaphore.ts";
import type { Log } from "../base/log.ts";
import { createTurns } from "../base/turns.ts";
import { refusedAs, SvcError, svcError } from "../protocol/errors.ts";
import { refusal } from "../protocol/refusals.ts";
import { type BlobStore, syncFile } from "./blob-store.ts";
import type { ChunkSources } from "./chunk-sources.ts";
import { buildTree, levelCounts, positionIn } from "./chunk-tree.ts";
import { type Content, contentOf } from "./content.ts";
import { CHUNK_BYTES, type ChunkPosition, sealChunk } from "./content-seal.ts";
import type { ContentSealer } from "./content-sealer.ts";
import { contentStream } from "./content-stream.ts";
import { ContentDamaged } from "./download.ts";
import { createManifests, type WholeContent } from "./manifests.ts";
import { isFull, type Received, receiveContent } from "./receive-content.ts";
import { createSharedDownloads } from "./shared-downloads.ts";

/** Share of the event loop for receiving while several contents come in; many other requests take precedence. */
const RECEIVING_SHARE = 1 / 2;
const RECEIVING_SHARE_BUSY = 1 / 30;
/** How long a reader waits for the first bytes of a content that is not here. */
const FIRST_BYTES_MS = 4_000;
/** Chunks that a whole download fetches at once. */
const AHEAD = 6;

export interface ContentStoreDeps {
  readonly blobs: BlobStore;
  readonly sources: ChunkSources;
  readonly sealer: ContentSealer;
  readonly log: Log;
  /** Whether many requests are coming in. */
  isBusy(): boolean;
  /** A fetched content is whole here, and its bytes match its identity. */
  arrived(content: Content): void;
  /** A content is no longer here. */
  gone(spaceId: SpaceId, rootCid: string): void;
}

export type StoredContent = Extract<Received, { kind: "stored" }>;

/** Contents of files on this device: how they are received, read, fetched where they are missing, and dropped. */
export type ContentStore = ReturnType<typeof createContentStore>;

export function createContentStore(deps: ContentStoreDeps) {
  const { blobs, sources, sealer, log } = deps;
  /** Operations on one content's place on the disk run one after the other. */
  const locks = createKeyedSemaphore<string>();
  /** Contents to which a row is about to refer; no sweep removes them. */
  const intended = new Map<string, number>();

  const nameOf = (spaceId: string, rootCid: string): string => `${spaceId}/${rootCid}`;

  const turns = createTurns({ share: () => (deps.isBusy() ? RECEIVING_SHARE_BUSY : RECEIVING_SHARE) });
  const downloads = createSharedDownloads({ blobs, sources, rootNameOf: nameOf, arrived: deps.arrived });
  const { using } = downloads;

  const whole = (content: Content): Promise<string | undefined> =>
    blobs.whole(content.spaceId, content.rootCid, content.size);
  const manifests = createManifests({ whole, sealer, nameOf });

  const store = {
    blobs,
    sources,

    receive: (spaceId: SpaceId, body: ReadableStream<Uint8Array> | null): Promise<Received> =>
      receiveContent(blobs, spaceId, body, turns),

    /**
     * Seals a received content under its epoch's key and puts it in its place. It is protected from sweeps already, so
     * `release` it once its row is written or given up.
     */
    async seal(
      spaceId: SpaceId,
      epoch: { readonly id: Uint8Array; readonly key: Uint8Array },
      received: StoredContent,
    ): Promise<Content> {
      const { path, size, hash } = received;
      const draft = contentOf(spaceId, epoch, { rootCid: "", size, hash });
      const digests = await sealer.digests({ path, key: draft.key, hash, size });
      const content = { ...draft, rootCid: buildTree(draft, digests).rootCid };
      const name = nameOf(spaceId, content.rootCid);
      intended.set(name, (intended.get(name) ?? 0) + 1);
      try {
        await locks.run(name, async () => {
          if (await whole(content)) return rm(path, { force: true });
          await downloads.without(name, () => blobs.adopt(spaceId, content.rootCid, path, size, digests));
          manifests.forget(name);
        });
      } catch (error) {
        store.release(content);
        await rm(path, { force: true });
        throw isFull(error) ? new SvcError("storage.full", { cause: error }) : error;
      }
      return content;
    },
    /** Receives a sealed content anew, to be sealed under another key. */
    async receiveAgain(content: Content, received: StoredContent): Promise<StoredContent> {
      const { path, handle } = await blobs.openTemp(content.spaceId);
      await handle.close();
      await copyFile(blobs.pathOf(content.spaceId, content.rootCid), path);
      await syncFile(path);
      return { ...received, path };
    },
    /** Call this when the row that refers to the content is written, or never will be. */
    release({ spaceId, rootCid }: Pick<Content, "spaceId" | "rootCid">): void {
      const name = nameOf(spaceId, rootCid);
      const left = (intended.get(name) ?? 0) - 1;
      if (left > 0) intended.set(name, left);
      else intended.delete(name);
    },
    /** Whether a row's claim about a content was proved false by the very bytes that it names. */
    isRefuted: downloads.isRefuted,
    isIntended: (spaceId: string, rootCid: string): boolean => intended.has(nameOf(spaceId, rootCid)),
    /** Whether somebody is reading it while it downloads. */
    isRead: (spaceId: string, rootCid: string): boolean => downloads.isRead(nameOf(spaceId, rootCid)),
    discard: (received: Received): Promise<void> =>
      received.kind === "stored" ? rm(received.path, { force: true }) : Promise.resolve(),

    /** Whether all of it is here, as far as known. */
    isCached(spaceId: string, rootCid: string, size: number): boolean {
      const blob = blobs.get(spaceId, rootCid);
      return blob !== undefined && !blob.partial && blob.bytes === size;
    },
    whole,

    /**
     * The bytes from `start` to `end`, inclusive: as a file on this disk, or as a stream that ends once all chunks
     * arrived. Errors: file.not_available when no reachable source has the first of them.
     */
    async read(content: Content, start: number, end: number): Promise<Blob | ReadableStream<Uint8Array>> {
      const path = await whole(content);
      await blobs.noteUse(content.spaceId, content.rootCid);
      if (path) return Bun.file(path).slice(start, end + 1);
      const first = await using(content, (download) =>
        within(FIRST_BYTES_MS, download.chunk(Math.floor(start / CHUNK_BYTES))),
      ).catch((error: unknown) => {
        throw failureOf(error);
      });
      if (!first) throw svcError("file.not_available");
      return contentStream(content, start, end, using);
    },

    /** Fetches all missing chunks; resolves to whether the content is now whole. */
    async complete(content: Content, onProgress: (bytes: number) => void = () => {}): Promise<boolean> {
      if (await whole(content)) return true;
      return using(content, async (download) => {
        let next = 0;
        let missing = false;
        const lane = async (): Promise<void> => {
          while (next < download.chunks && !missing) {
            const index = next++;
            if (!(await download.chunk(index))) missing = true;
            onProgress(Math.min(content.size, download.present() * CHUNK_BYTES));
          }
        };
        await Promise.all(Array.from({ length: AHEAD }, lane));
        if (missing) return false;
        await download.whole;
        return true;
      });
    },

    /**
     * A whole content with its manifest, for peers that fetch it chunk by chunk. Resolves to undefined when the content
     * is not here, or the copy here does not match: a caller that trusts the identity then asks for a `scrub`.
     */
    manifest: (content: Content): Promise<WholeContent | undefined> => manifests.of(content),

    /** The sealed chunk or page at a place, as far as this device has it; other peers fetch it and verify it. */
    async sealed(
      content: Content,
      { level, index }: Pick<ChunkPosition, "level" | "index">,
    ): Promise<Uint8Array | undefined> {
      const counts = levelCounts(content.size);
      if (level >= counts.length || index >= counts[level]!) return undefined;
      const found = await store.manifest(content);
      if (!found) {
        const download = downloads.current(content);
        if (level > 0 || blobs.get(content.spaceId, content.rootCid) === undefined) return undefined;
        return download ? (await download).sealedHere(index) : using(content, (opened) => opened.sealedHere(index));
      }
      if (level > 0)
        return found.tree.pages.find(({ position }) => position.level === level && position.index === index)?.sealed;
      const plain = new Uint8Array(
        await Bun.file(found.path)
          .slice(index * CHUNK_BYTES, Math.min(content.size, (index + 1) * CHUNK_BYTES))
          .arrayBuffer(),
      );
      return sealChunk(content.key, content.hash, positionIn(counts, level, index), plain);
    },

    /**
     * Seals the whole copy here again; when it is not what it should be, removes it and resolves to false. The identity
     * must be a proved one, because a false row could make us drop a good copy.
     */
    async scrub(content: Content): Promise<boolean> {
      const path = await whole(content);
      if (path && (await manifests.isTrue(path, content))) return true;
      if (blobs.get(content.spaceId, content.rootCid)?.partial !== false) return false;
      log.warn("files: a copy was damaged and is dropped; it is fetched again when it is asked for", {
        spaceId: content.spaceId,
        rootCid: content.rootCid,
      });
      await store.drop(content.spaceId, content.rootCid);
      return false;
    },

    /** Drops what is here of a content; resolves to the number of bytes freed. */
    async drop(spaceId: SpaceId, rootCid: string): Promise<number> {
      const name = nameOf(spaceId, rootCid);
      const freed = await locks.run(name, () =>
        downloads.without(name, () => {
          manifests.forget(name);
          return blobs.remove(spaceId, rootCid);
        }),
      );
      if (freed > 0) deps.gone(spaceId, rootCid);
      return freed;
    },

    async dropSpace(spaceId: SpaceId): Promise<void> {
      await downloads.closeSpace(spaceId);
      manifests.forgetSpace(spaceId);
      await blobs.dropSpace(spaceId);
    },

    async close(): Promise<void> {
      await downloads.close();
      sealer.close();
    },
  };
  return store;
}

/** The value, or undefined when it takes too long. */
function within<T>(limitMs: number, work: Promise<T>): Promise<T | undefined> {
  return Promise.race([work, Bun.sleep(limitMs).then(() => undefined)]);
}

function failureOf(error: unknown): unknown {
  if (error instanceof ContentDamaged) return refusedAs("file.not_available", undefined, refusal("file.spoilt"));
  return isFull(error) ? new SvcError("storage.full", { cause: error }) : error;
}
