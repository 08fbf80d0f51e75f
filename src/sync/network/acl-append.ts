import { concatBytes, equalBytes, utf8ToBytes } from "../../base/bytes.ts";
import type { Timers } from "../../base/timers.ts";
import { open, seal } from "../../crypto/seal.ts";
import { readFromLeader } from "./direct-read.ts";
import type { NatsLink } from "./nats-link.ts";
import { isConflict, isForbidden, networkFailure } from "./network-error.ts";
import { pause } from "./pause.ts";
import { type ChannelKeys, logSubject } from "./subjects.ts";

/**
 * A space's ACL log: one record a message, appended only behind the record that the author has seen last. Records are
 * sealed like everything else; readers decide whether one is valid.
 */

export type AclAppendResult =
  | { readonly outcome: "appended"; readonly seq: number }
  /** Somebody else appended first: read on from the follower, rebuild on the new head, and try again. */
  | { readonly outcome: "conflict" };

const sealAclRecord = (keys: ChannelKeys, record: Uint8Array): Uint8Array =>
  seal(keys.sealKey, record, utf8ToBytes(logSubject(keys, "a")));

/** The record, or undefined for junk. */
export const openAclRecord = (keys: ChannelKeys, message: Uint8Array): Uint8Array | undefined =>
  open(keys.sealKey, message, utf8ToBytes(logSubject(keys, "a")));

const LINK_PREFIX = utf8ToBytes("svc/place-before/v1\0");
const SECRET_BYTES = 32;

/** Stands before a place's records, for a reader who comes by this place alone: the secret of the place before. */
export const placeLink = (secretBefore: Uint8Array): Uint8Array => concatBytes(LINK_PREFIX, secretBefore);

/** The secret in a link; undefined for anything else that stands in the ACL log. */
export function secretInLink(bytes: Uint8Array): Uint8Array | undefined {
  const isLink =
    bytes.length === LINK_PREFIX.length + SECRET_BYTES &&
    equalBytes(bytes.subarray(0, LINK_PREFIX.length), LINK_PREFIX);
  return isLink ? bytes.slice(LINK_PREFIX.length) : undefined;
}

const ATTEMPTS = 4;
const RETRY_MS = 250;
/** After a lost connection, how long to wait to learn what became of an append. */
const RECONNECT_WAIT_MS = 15_000;

/**
 * Appends a record behind the message `afterSeq` (the ACL follower's cursor; 0 for an empty log), or not at all. If the
 * acknowledgement is lost, the leader's next message behind `afterSeq` tells what became of the append: it is this record,
 * or another one, or there is none, and then the record is sent again. Throws `network.unavailable` when that cannot be
 * found out; the follower tells later.
 */
export async function appendAclRecord(
  { link, timers }: { readonly link: NatsLink; readonly timers: Timers },
  keys: ChannelKeys,
  record: Uint8Array,
  afterSeq: number,
  signal: AbortSignal,
): Promise<AclAppendResult> {
  const subject = logSubject(keys, "a");
  const message = sealAclRecord(keys, record);
  if (!link.connection()) throw networkFailure(undefined);
  const onlineWithin = (ms: number) => {
    const late = new AbortController();
    const callOff = timers.after(ms, () => late.abort());
    return link.online(AbortSignal.any([signal, late.signal])).finally(callOff);
  };
  for (let attempt = 1; ; attempt++) {
    const connection = link.connection() ?? (await onlineWithin(RECONNECT_WAIT_MS));
    try {
      const next = attempt === 1 ? undefined : await readFromLeader(connection.jsm, keys.stream, subject, afterSeq + 1);
      if (next)
        return equalBytes(next.data, message) ? { outcome: "appended", seq: next.seq } : { outcome: "conflict" };
      const ack = await connection.js.publish(subject, message, { expect: { lastSubjectSequence: afterSeq } });
      return { outcome: "appended", seq: ack.seq };
    } catch (error) {
      if (attempt === ATTEMPTS || isForbidden(error) || signal.aborted) throw networkFailure(error);
      if (!isConflict(error)) await pause(timers, RETRY_MS * attempt, signal);
    }
  }
}
