import { bytesToHex } from "../../base/bytes.ts";
import { randomBytes } from "../../base/random.ts";
import { sha256 } from "../../crypto/hash.ts";
import { isJsonObject } from "../../protocol/json.ts";

/**
 * How far a log has been read, and proof that it is still that log. A sequence number alone proves nothing: after a store
 * was wiped or restored from an older copy and has grown again, the same number names another message. So a cursor also
 * holds a digest of the message at which it stands. Logs only grow, and a seal has a random nonce: the same message in the
 * same place means the same log up to there.
 */
export interface LogCursor {
  readonly v: 1;
  /** Minted when a reading begins at the log's start. What was confirmed under another generation is not confirmed. */
  readonly generation: string;
  /** Sequence in the stream of the last message read; 0 when the log was empty. */
  readonly seq: number;
  /** Hex of the first 16 bytes of the SHA-256 of that message as stored; empty at 0. */
  readonly digest: string;
}

export const startCursor = (): LogCursor => ({ v: 1, generation: bytesToHex(randomBytes(8)), seq: 0, digest: "" });

export const messageDigest = (message: Uint8Array): string => bytesToHex(sha256(message).subarray(0, 16));

/** Whether the log still has, where a cursor stands, what was read there. */
export const isAnchor = (message: { seq: number; data: Uint8Array } | undefined, cursor: LogCursor): boolean =>
  message !== undefined && message.seq === cursor.seq && messageDigest(message.data) === cursor.digest;

/** A cursor from storage, or undefined when it is of another version or no cursor: reading then begins anew. */
export function parseLogCursor(value: unknown): LogCursor | undefined {
  if (!isJsonObject(value)) return undefined;
  const { v, generation, seq, digest } = value;
  if (v !== 1 || typeof generation !== "string" || generation === "") return undefined;
  if (typeof seq !== "number" || !Number.isSafeInteger(seq) || seq < 0) return undefined;
  if (typeof digest !== "string" || (seq === 0) !== (digest === "")) return undefined;
  return { v, generation, seq, digest };
}
