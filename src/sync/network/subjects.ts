import { createHmac } from "node:crypto";
import { bytesToBase32 } from "../../base/base32.ts";
import { utf8ToBytes } from "../../base/bytes.ts";
import { deriveKey } from "../../crypto/derive.ts";
import { sha256 } from "../../crypto/hash.ts";

/**
 * Names on the network. All are keyed hashes of a channel's secret. Without the secret they tell only that two messages
 * belong together. `docs/network.md` lists them for the operator.
 */

/** Log streams. Fixed for ever: a channel's stream is a function of its tag. */
export const LOG_SHARDS = 8;
export const FILE_STREAM = "SVC_FILES";
export const INBOX_STREAM = "SVC_INBOX";

export const logStream = (shard: number): string => `SVC_LOG_${shard}`;

/** A channel's two logs: sealed changes, and ACL records. */
export type LogKind = "c" | "a";

const TAG_BYTES = 16;
const EVENT_TOKEN_BYTES = 10;

/** What a transport secret (32 bytes, held by a space's members and invitees) gives: names and keys of one channel. */
export interface ChannelKeys {
  /** 26 characters of base32. */
  readonly tag: string;
  readonly shard: number;
  readonly stream: string;
  /** Outer seal of logs, events and chunks; the subject is the additional data. */
  readonly sealKey: Uint8Array;
  readonly messageIdKey: Uint8Array;
  readonly eventKey: Uint8Array;
  readonly chunkKey: Uint8Array;
}

export function deriveChannelKeys(transportSecret: Uint8Array): ChannelKeys {
  const tagBytes = deriveKey(transportSecret, "network/tag").subarray(0, TAG_BYTES);
  const shard = tagBytes[0]! % LOG_SHARDS;
  return {
    tag: bytesToBase32(tagBytes),
    shard,
    stream: logStream(shard),
    sealKey: deriveKey(transportSecret, "network/seal"),
    messageIdKey: deriveKey(transportSecret, "network/message-id"),
    eventKey: deriveKey(transportSecret, "network/event"),
    chunkKey: deriveKey(transportSecret, "network/chunk"),
  };
}

export const logSubject = (keys: ChannelKeys, kind: LogKind): string => `svc.log.${keys.shard}.${keys.tag}.${kind}`;

/** The subject on which the server reports, without the payload, that a subject grew (the streams' `republish`). */
export const hintSubject = (subject: string): string => `svc.hint.${subject.slice("svc.".length)}`;

/**
 * An account's inbox. Anybody who knows an account id can compute the name of its inbox and write to it, which is what an
 * inbox is for. The tag does not give the account id away.
 */
export function inboxSubject(accountPublicKey: Uint8Array): string {
  const prefix = utf8ToBytes("svc/network/inbox/v1\0");
  const tagged = new Uint8Array(prefix.length + accountPublicKey.length);
  tagged.set(prefix);
  tagged.set(accountPublicKey, prefix.length);
  return `svc.inbox.${bytesToBase32(sha256(tagged).subarray(0, TAG_BYTES))}`;
}

/** A chunk's write-once subject. Attempts above 0 use another subject where one holds junk. */
export function chunkSubject(keys: Pick<ChannelKeys, "chunkKey">, chunkDigest: Uint8Array, attempt: number): string {
  return `svc.file.${keyedToken(keys.chunkKey, chunkDigest, attempt, TAG_BYTES)}`;
}

/**
 * The subject of an event topic (`ev/process/progress/p1`) or of a pattern over topics (`*` one segment, `>` the tail):
 * segment by segment, so that the server can match patterns over names it cannot read.
 */
export function eventSubject(keys: ChannelKeys, topic: string): string {
  const tokens = topic
    .split("/")
    .map((segment) =>
      segment === "*" || segment === ">"
        ? segment
        : keyedToken(keys.eventKey, utf8ToBytes(segment), 0, EVENT_TOKEN_BYTES),
    );
  return `svc.event.${keys.tag}.${tokens.join(".")}`;
}

/** Content-addressed id by which the server drops a repetition within its window (2 minutes). */
export function messageId(keys: ChannelKeys, itemDigests: readonly Uint8Array[]): string {
  const hmac = createHmac("sha256", keys.messageIdKey);
  for (const digest of itemDigests) hmac.update(digest);
  return bytesToBase32(new Uint8Array(hmac.digest()).subarray(0, TAG_BYTES));
}

function keyedToken(key: Uint8Array, text: Uint8Array, attempt: number, length: number): string {
  const hmac = createHmac("sha256", key).update(Uint8Array.of(attempt)).update(text);
  return bytesToBase32(new Uint8Array(hmac.digest()).subarray(0, length));
}
