import { expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { scratchDir } from "../../test/support/scratch.ts";
import { concatBytes } from "../base/bytes.ts";
import { systemClock } from "../base/clock.ts";
import type { SpaceId } from "../base/ids.ts";
import { createTurns } from "../base/turns.ts";
import { cidOf } from "../crypto/cid.ts";
import { sha256 } from "../crypto/hash.ts";
import { openBlobStore } from "./blob-store.ts";
import { receiveContent } from "./receive-content.ts";

const SPACE = cidOf(new Uint8Array(8)) as SpaceId;
const PIECE_BYTES = 64 << 10;
const PIECES = 512;
/**
 * Up to a megabyte waits to be written at once; besides it one piece is arriving, and the previous one may still be held.
 */
const HELD_AT_MOST = (1 << 20) + 2 * PIECE_BYTES;

test("[FILE-10] of a body that comes in only what is not written yet is held in memory, without a collection", async () => {
  using directory = scratchDir("receive-content");
  const blobs = await openBlobStore(directory.path, systemClock);
  const given: Uint8Array[] = [];
  const copies: Uint8Array[] = [];
  let mostHeld = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        mostHeld = Math.max(mostHeld, heldBytes(given));
        if (given.length === PIECES) return controller.close();
        const piece = new Uint8Array(PIECE_BYTES).fill(given.length);
        given.push(piece);
        copies.push(piece.slice());
        controller.enqueue(piece);
      },
    },
    { highWaterMark: 0 },
  );
  const received = await receiveContent(blobs, SPACE, body, createTurns({ share: () => 1 }));
  if (received.kind !== "stored") throw new Error(received.kind);
  const sent = concatBytes(...copies);
  expect(received.size).toBe(sent.length);
  expect(received.hash).toEqual(sha256(sent));
  expect(Buffer.compare(await readFile(received.path), sent)).toBe(0);
  expect(mostHeld).toBeLessThanOrEqual(HELD_AT_MOST);
});

test("[FILE-10] pieces that share a buffer come in whole", async () => {
  using directory = scratchDir("receive-content");
  const blobs = await openBlobStore(directory.path, systemClock);
  const sent = new Uint8Array(4 << 20).map((_, at) => at % 251);
  const shared = sent.slice();
  let at = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at === shared.length) return controller.close();
      controller.enqueue(shared.subarray(at, at + PIECE_BYTES));
      at += PIECE_BYTES;
    },
  });
  const received = await receiveContent(blobs, SPACE, body, createTurns({ share: () => 1 }));
  if (received.kind !== "stored") throw new Error(received.kind);
  expect(Buffer.compare(await readFile(received.path), sent)).toBe(0);
});

function heldBytes(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, { buffer }) => sum + buffer.byteLength, 0);
}
