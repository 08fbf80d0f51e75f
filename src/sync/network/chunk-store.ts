import { equalBytes, utf8ToBytes } from "../../base/bytes.ts";
import { sha256 } from "../../crypto/hash.ts";
import { open, SEAL_OVERHEAD_BYTES, seal } from "../../crypto/seal.ts";
import { refusedAs } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import { readFromLeader } from "./direct-read.ts";
import type { LiveConnection, NatsLink } from "./nats-link.ts";
import { isOutOfRoom, JS_ERROR, jetStreamCode, networkFailure } from "./network-error.ts";
import { type ChannelKeys, chunkSubject, FILE_STREAM } from "./subjects.ts";

/** Names and seals the chunks of those who share a secret. */
export type ChunkKeys = Pick<ChannelKeys, "chunkKey" | "sealKey">;

/**
 * Where in the store a chunk was put. Later this proves that the store is still the one that took it: a store that was
 * wiped, or restored from an older copy, has something else in that place, or nothing.
 */
export interface StoredChunk {
  /** When the stream was made, as its leader says. */
  readonly created: string;
  readonly seq: number;
  readonly subject: string;
}

/**
 * File chunks by content. A chunk is a message on a write-once subject, which is a keyed hash of the chunk's digest. So
 * storing it again costs nothing and nobody can replace it. NATS's own object store is not used: it overwrites by roll-up,
 * and a client that may roll up may erase.
 */
export interface ChunkStore {
  /** Number of the present connection. What was put over another connection may have gone to another store. */
  connection(): number | undefined;
  /**
   * Stores a chunk (already sealed for its readers) and reads it back: when this answers where it lies, the store acknowledged it
   * and gave the same bytes. "full": it has no room for it. Throws `network.unavailable` or `network.forbidden`.
   */
  put(keys: ChunkKeys, chunk: Uint8Array): Promise<StoredChunk | "full">;
  /** The chunk whose SHA-256 this is, or undefined when the store does not have it. */
  get(keys: ChunkKeys, digest: Uint8Array): Promise<Uint8Array | undefined>;
  /** Where the store has it; undefined when it does not. Reads it to know. */
  locate(keys: ChunkKeys, digest: Uint8Array): Promise<StoredChunk | undefined>;
  /** Whether the store has something in its place, without fetching it: a hint, no proof that `get` succeeds. */
  has(keys: ChunkKeys, digest: Uint8Array): Promise<boolean>;
  /** Whether the store is still the one that had this chunk where it is said to lie. */
  isSame(stored: StoredChunk): Promise<boolean>;
}

/** A chunk and its seal fit a message of 1 MiB with room for headers. */
export const CHUNK_BYTES_MAX = (1 << 20) - 4096 - SEAL_OVERHEAD_BYTES;
/** Subjects tried for one chunk, because anybody with the channel's secret can occupy a subject with junk. */
const ATTEMPTS = 3;
/** What a publish takes beside the payload. */
const FRAME_BYTES = 1024;

export function createChunkStore(link: NatsLink): ChunkStore {
  const requireConnection = (): LiveConnection => {
    const connection = link.connection();
    if (!connection) throw networkFailure(undefined);
    return connection;
  };

  const read = async (connection: LiveConnection, keys: ChunkKeys, digest: Uint8Array, attempt: number) => {
    const subject = chunkSubject(keys, digest, attempt);
    // Whatever a replica gives is checked against the digest, so only "not found" needs the leader's word.
    const found =
      (await connection.reader.last(FILE_STREAM, subject)) ??
      (await readFromLeader(connection.jsm, FILE_STREAM, subject, 1));
    if (!found) return "absent";
    const chunk = open(keys.sealKey, found.data, utf8ToBytes(subject));
    if (!chunk || !equalBytes(sha256(chunk), digest)) return "junk";
    return { chunk, seq: found.seq, subject };
  };

  /** A server that takes no message of this size would cut the connection. */
  const requireFits = (connection: LiveConnection, bytes: number): void => {
    const limit = connection.nc.info?.max_payload ?? Number.POSITIVE_INFINITY;
    if (bytes + FRAME_BYTES <= limit) return;
    throw refusedAs(
      "network.unavailable",
      undefined,
      refusal("network.small_chunks", { limitBytes: limit, bytes: bytes + FRAME_BYTES }),
    );
  };

  /** Whether the subject took it. If JetStream refuses, the chunk may be there already, or there is no room. */
  const publish = async (
    connection: LiveConnection,
    subject: string,
    sealed: Uint8Array,
  ): Promise<"stored" | "refused" | "full"> => {
    try {
      await connection.js.publish(subject, sealed);
      return "stored";
    } catch (error) {
      // One number for both: the subject has its message, or the stream has no room.
      if (jetStreamCode(error) === JS_ERROR.maximumPerSubjectExceeded) return "refused";
      if (isOutOfRoom(error)) return "full";
      throw networkFailure(error);
    }
  };

  const find = async (connection: LiveConnection, keys: ChunkKeys, digest: Uint8Array) => {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const found = await read(connection, keys, digest, attempt);
      if (found === "absent") return undefined;
      if (found !== "junk") return found;
    }
    return undefined;
  };

  return {
    connection: () => link.connection()?.number,
    put: async (keys, chunk) => {
      if (chunk.length > CHUNK_BYTES_MAX)
        throw new RangeError(`a chunk of ${chunk.length} bytes, over ${CHUNK_BYTES_MAX}`);
      const connection = requireConnection();
      requireFits(connection, chunk.length + SEAL_OVERHEAD_BYTES);
      const digest = sha256(chunk);
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const subject = chunkSubject(keys, digest, attempt);
        const outcome = await publish(connection, subject, seal(keys.sealKey, chunk, utf8ToBytes(subject)));
        const back = await read(connection, keys, digest, attempt);
        if (typeof back !== "string") {
          return { created: createdIn(connection), seq: back.seq, subject };
        }
        if (back === "junk") continue;
        if (outcome !== "stored") return "full";
        throw refusedAs("network.unavailable", undefined, refusal("network.keeps_chunk"));
      }
      throw refusedAs("network.unavailable", undefined, refusal("network.other_chunk"));
    },
    get: async (keys, digest) => (await find(requireConnection(), keys, digest))?.chunk,
    locate: async (keys, digest) => {
      const connection = requireConnection();
      const found = await find(connection, keys, digest);
      return found && { created: createdIn(connection), seq: found.seq, subject: found.subject };
    },
    has: async (keys, digest) => {
      const connection = requireConnection();
      const subject = chunkSubject(keys, digest, 0);
      try {
        const info = await connection.jsm.streams.info(FILE_STREAM, { subjects_filter: subject });
        return (info.state.subjects?.[subject] ?? 0) > 0;
      } catch (error) {
        throw networkFailure(error);
      }
    },
    isSame: async ({ created, seq, subject }) => {
      const connection = requireConnection();
      if (createdIn(connection) !== created) return false;
      const found = await readFromLeader(connection.jsm, FILE_STREAM, subject, 1);
      return found?.seq === seq;
    },
  };
}

const createdIn = (connection: LiveConnection): string => String(connection.streams.get(FILE_STREAM)?.created ?? "");
