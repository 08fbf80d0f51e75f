import { svcError } from "../protocol/errors.ts";
import type { Content } from "./content.ts";
import { CHUNK_BYTES } from "./content-seal.ts";
import type { Download } from "./download.ts";

/** Works with the download of a content, which stays open meanwhile. */
export type UseDownload = <T>(content: Content, work: (download: Download) => Promise<T>) => Promise<T>;

/** Chunks fetched ahead of a reader. */
const AHEAD = 6;
/** How long a reader that has begun waits for the next bytes. */
const STALL_MS = 30_000;

/**
 * Streams the bytes from `start` to `end`, inclusive, as their chunks arrive. Fails with file.not_available when they do
 * not.
 */
export function contentStream(
  content: Content,
  start: number,
  end: number,
  using: UseDownload,
): ReadableStream<Uint8Array> {
  const last = Math.floor(end / CHUNK_BYTES);
  let index = Math.floor(start / CHUNK_BYTES);
  const ended = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<Download>();
  opened.promise.catch(() => undefined); // the reader gets the error
  // The download stays open for as long as the reader reads.
  using(content, async (download) => {
    opened.resolve(download);
    await ended.promise;
  }).catch(opened.reject);
  const readChunk = async (download: Download, at: number): Promise<Uint8Array | undefined> => {
    for (let next = at + 1; next <= Math.min(last, at + AHEAD); next++) download.chunk(next).catch(() => undefined);
    const deadline = performance.now() + STALL_MS;
    for (;;) {
      const plain = await download.chunk(at);
      if (plain || performance.now() > deadline) return plain;
      await Bun.sleep(250);
    }
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const plain = await readChunk(await opened.promise, index);
          if (!plain) throw svcError("file.not_available");
          const from = index * CHUNK_BYTES;
          controller.enqueue(plain.subarray(Math.max(0, start - from), Math.min(plain.length, end + 1 - from)));
          if (index++ === last) {
            controller.close();
            ended.resolve();
          }
        } catch (error) {
          ended.resolve();
          controller.error(error);
        }
      },
      cancel: () => ended.resolve(),
    },
    { highWaterMark: 0 },
  );
}
