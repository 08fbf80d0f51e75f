import { equalBytes, utf8ToBytes } from "../../base/bytes.ts";
import { sha256 } from "../../crypto/hash.ts";
import { open, SEAL_OVERHEAD_BYTES, seal } from "../../crypto/seal.ts";
import { svcError } from "../../protocol/errors.ts";
import { readFromLeader } from "./direct-read.ts";
import type { NatsEpoch, NatsLink } from "./nats-link.ts";
import { JS_ERROR, jetStreamCode, networkFailure } from "./network-error.ts";
import { type ChannelKeys, chunkSubject, FILE_STREAM } from "./subjects.ts";

/**
 * File chunks by content. A chunk is a message on a write-once subject that is a keyed hash of its digest, so storing it
 * again costs nothing and nobody can replace it. NATS's own object store is not used: it overwrites by roll-up, and
 * whoever may roll up may erase.
 */
export interface ChunkStore {
  /**
   * Stores a chunk (already sealed for its readers) and reads it back: when this resolves, the store acknowledged it and
   * gave the same bytes. Throws `network.unavailable` or `network.forbidden`.
   */
  put(keys: ChannelKeys, chunk: Uint8Array): Promise<void>;
  /** The chunk whose SHA-256 this is, or undefined when the store does not have it. */
  get(keys: ChannelKeys, digest: Uint8Array): Promise<Uint8Array | undefined>;
  /** Whether the store has something in its place, without fetching it: a hint, no proof that `get` succeeds. */
  has(keys: ChannelKeys, digest: Uint8Array): Promise<boolean>;
}

/** A chunk and its seal fit a message of 1 MiB with room for headers. */
export const CHUNK_BYTES_MAX = (1 << 20) - 4096 - SEAL_OVERHEAD_BYTES;
/** Subjects tried for one chunk: somebody with the channel's secret can occupy one with junk. */
const ATTEMPTS = 3;

export function createChunkStore(link: NatsLink): ChunkStore {
  const requireEpoch = (): NatsEpoch => {
    const epoch = link.epoch();
    if (!epoch) throw networkFailure(undefined);
    return epoch;
  };

  const read = async (epoch: NatsEpoch, keys: ChannelKeys, digest: Uint8Array, attempt: number) => {
    const subject = chunkSubject(keys, digest, attempt);
    // Whatever a replica gives is checked against the digest, so only its "not found" needs the leader's word.
    const found =
      (await epoch.reader.last(FILE_STREAM, subject)) ?? (await readFromLeader(epoch.jsm, FILE_STREAM, subject, 1));
    if (!found) return "absent";
    const chunk = open(keys.sealKey, found.data, utf8ToBytes(subject));
    return chunk && equalBytes(sha256(chunk), digest) ? chunk : "junk";
  };

  return {
    put: async (keys, chunk) => {
      if (chunk.length > CHUNK_BYTES_MAX)
        throw new RangeError(`a chunk of ${chunk.length} bytes, over ${CHUNK_BYTES_MAX}`);
      const epoch = requireEpoch();
      const digest = sha256(chunk);
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const subject = chunkSubject(keys, digest, attempt);
        try {
          await epoch.js.publish(subject, seal(keys.sealKey, chunk, utf8ToBytes(subject)));
        } catch (error) {
          if (jetStreamCode(error) !== JS_ERROR.maximumPerSubjectExceeded) throw networkFailure(error);
        }
        const back = await read(epoch, keys, digest, attempt);
        if (typeof back !== "string") return;
        if (back === "absent") {
          throw svcError(
            "network.unavailable",
            undefined,
            "The network acknowledged a chunk but does not give it back; retry",
          );
        }
      }
      throw svcError("network.unavailable", undefined, "The network holds other bytes in place of a chunk");
    },
    get: async (keys, digest) => {
      const epoch = requireEpoch();
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const chunk = await read(epoch, keys, digest, attempt);
        if (chunk === "absent") return undefined;
        if (chunk !== "junk") return chunk;
      }
      return undefined;
    },
    has: async (keys, digest) => {
      const epoch = requireEpoch();
      const subject = chunkSubject(keys, digest, 0);
      try {
        const info = await epoch.jsm.streams.info(FILE_STREAM, { subjects_filter: subject });
        return (info.state.subjects?.[subject] ?? 0) > 0;
      } catch (error) {
        throw networkFailure(error);
      }
    },
  };
}
