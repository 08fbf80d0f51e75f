import { equalBytes, utf8ToBytes } from "../../base/bytes.ts";
import { open, seal } from "../../crypto/seal.ts";
import { readFromLeader } from "./direct-read.ts";
import type { NatsEpoch, NatsLink } from "./nats-link.ts";
import { isConflict, networkFailure } from "./network-error.ts";
import { pause } from "./pause.ts";
import { type ChannelKeys, logSubject } from "./subjects.ts";

/**
 * A space's ACL log: one record a message, appended only onto the record the author has seen last. Records are sealed
 * like everything else; whether one is valid is for whoever reads it.
 */

export type AclAppendResult =
  | { readonly outcome: "appended"; readonly seq: number }
  /** Somebody appended first: read on from the follower, rebuild on the new head, try again. */
  | { readonly outcome: "conflict" };

export const sealAclRecord = (keys: ChannelKeys, record: Uint8Array): Uint8Array =>
  seal(keys.sealKey, record, utf8ToBytes(logSubject(keys, "a")));

/** The record, or undefined for junk. */
export const openAclRecord = (keys: ChannelKeys, message: Uint8Array): Uint8Array | undefined =>
  open(keys.sealKey, message, utf8ToBytes(logSubject(keys, "a")));

const ATTEMPTS = 4;
const RETRY_MS = 250;

/**
 * Appends a record behind the message `afterSeq` (the ACL follower's cursor; 0 for an empty log), or not at all. A lost
 * acknowledgement is cleared up by reading what the leader has behind `afterSeq`: if it is this record, it was
 * appended. Throws `network.unavailable` when that cannot be found out either; the follower then tells later.
 */
export async function appendAclRecord(
  link: NatsLink,
  keys: ChannelKeys,
  record: Uint8Array,
  afterSeq: number,
  signal: AbortSignal,
): Promise<AclAppendResult> {
  const subject = logSubject(keys, "a");
  const message = sealAclRecord(keys, record);
  for (let attempt = 1; ; attempt++) {
    const epoch = link.epoch();
    if (!epoch) throw networkFailure(undefined);
    try {
      const ack = await epoch.js.publish(subject, message, { expect: { lastSubjectSequence: afterSeq } });
      return { outcome: "appended", seq: ack.seq };
    } catch (error) {
      const found = await findOutcome(link, epoch, subject, keys, message, afterSeq).catch((failure) => {
        if (attempt === ATTEMPTS) throw failure;
        return undefined;
      });
      if (found) return found;
      // Nothing is behind `afterSeq`, so nothing was appended; a conflict nevertheless is a leader that is new.
      if (attempt === ATTEMPTS) throw networkFailure(isConflict(error) ? undefined : error);
      await pause(RETRY_MS * attempt, signal);
      if (signal.aborted) throw networkFailure(error);
    }
  }
}

async function findOutcome(
  link: NatsLink,
  epoch: NatsEpoch,
  subject: string,
  keys: ChannelKeys,
  message: Uint8Array,
  afterSeq: number,
): Promise<AclAppendResult | undefined> {
  const now = link.epoch() ?? epoch;
  const next = await readFromLeader(now.jsm, keys.stream, subject, afterSeq + 1);
  if (!next) return undefined;
  return equalBytes(next.data, message) ? { outcome: "appended", seq: next.seq } : { outcome: "conflict" };
}
