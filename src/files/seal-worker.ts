/**
 * Entry of a thread that seals the chunks of a file on this disk and returns their hashes. It does not keep the sealed
 * bytes.
 */
import { closeSync, openSync, readSync } from "node:fs";
import { constants } from "node:os";
import { giveWay } from "../base/give-way.ts";
import { sha256 } from "../crypto/hash.ts";
import { chunkCount } from "./chunk-tree.ts";
import { CHUNK_BYTES, sealChunk } from "./content-seal.ts";
import type { SealReply, SealRequest } from "./seal-job.ts";

declare const self: Worker;

// On other systems a thread has no priority of its own.
if (process.platform === "linux") giveWay(constants.priority.PRIORITY_BELOW_NORMAL);

function digestsOf({ path, key, hash, size }: SealRequest): SealReply {
  const count = chunkCount(size);
  const digests = new Uint8Array(count * 32);
  const buffer = new Uint8Array(CHUNK_BYTES);
  const fd = openSync(path, "r");
  try {
    for (let index = 0; index < count; index++) {
      const length = Math.min(CHUNK_BYTES, size - index * CHUNK_BYTES);
      let filled = 0;
      while (filled < length) {
        const got = readSync(fd, buffer, filled, length - filled, index * CHUNK_BYTES + filled);
        if (got === 0) return { fault: "the file is shorter than it was" };
        filled += got;
      }
      const position = { level: 0, index, last: index === count - 1 };
      digests.set(sha256(sealChunk(key, hash, position, buffer.subarray(0, length))), index * 32);
    }
    return { digests };
  } finally {
    closeSync(fd);
  }
}

self.onmessage = ({ data }: MessageEvent<SealRequest>) => {
  let reply: SealReply;
  try {
    reply = digestsOf(data);
  } catch (error) {
    reply = { fault: error instanceof Error ? error.message : String(error) };
  }
  self.postMessage(reply);
};
