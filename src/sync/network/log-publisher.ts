import type { Log } from "../../base/log.ts";
import type { Timers } from "../../base/timers.ts";
import { sha256 } from "../../crypto/hash.ts";
import { refusedAs, SvcError } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { LogFollower } from "./log-follower.ts";
import { MESSAGE_ITEMS_MAX, MESSAGE_OVERHEAD_BYTES, MESSAGE_TARGET_BYTES, sealLogMessage } from "./log-message.ts";
import type { LiveConnection, NatsLink } from "./nats-link.ts";
import { isConflict, networkFailure } from "./network-error.ts";
import { pause } from "./pause.ts";
import { type ChannelKeys, logSubject, messageId } from "./subjects.ts";

export interface OutgoingBatch {
  /** Oldest first. What does not fit into one message is asked for again. */
  readonly items: readonly Uint8Array[];
  /**
   * Append only if the log ends where the follower stands, so that nothing is stored twice although others may be
   * storing the same: for what another device wrote, and for everything after a store was lost. A device's fresh
   * changes need no such care and go without.
   */
  readonly exact: boolean;
}

export interface PublisherSource {
  /**
   * What this device should put on the network and has not read back from it, oldest first; empty when there is
   * nothing. The queue is the caller's (durable) one: the publisher holds one batch at a time.
   */
  outgoing(limits: { readonly maxItems: number; readonly maxBytes: number }): Promise<OutgoingBatch>;
}

export interface PublisherState {
  readonly phase: "idle" | "publishing" | "failing";
  readonly error?: SvcError;
}

export interface LogPublisher extends AsyncDisposable {
  state(): PublisherState;
  /** There may be something to publish. */
  wake(): void;
}

export interface LogPublisherDeps {
  readonly link: NatsLink;
  readonly keys: ChannelKeys;
  readonly follower: LogFollower;
  readonly source: PublisherSource;
  readonly log: Log;
  readonly timers: Timers;
  readonly changed?: () => void;
}

const RETRY_FIRST_MS = 250;
const RETRY_MAX_MS = 30_000;
/** The same items published and acknowledged this often without being read back: the store does not keep them. */
const STUCK_ROUNDS = 3;

/** A message that may or may not have been stored: sent again as it is, so that the server can tell it is the same. */
interface Unsure {
  readonly message: Uint8Array;
  readonly id: string;
  readonly digests: readonly Uint8Array[];
  readonly exact: boolean;
}

/**
 * Publishes what the source has, one message at a time, and only with the log read to its tail: so what a lost
 * acknowledgement left stored is seen before it would be published twice. Nothing counts as stored because it was
 * acknowledged; it counts when the follower delivers it.
 */
export function createLogPublisher(deps: LogPublisherDeps): LogPublisher {
  const { link, keys, follower, source } = deps;
  const subject = logSubject(keys, "c");
  const closing = new AbortController();
  let state: PublisherState = { phase: "idle" };
  let woken = Promise.withResolvers<void>();
  let unsure: Unsure | undefined;
  let previousRound = "";
  let sameRounds = 0;

  const setState = (phase: PublisherState["phase"], error?: SvcError) => {
    if (state.phase === phase && state.error === error) return;
    state = error ? { phase, error } : { phase };
    deps.changed?.();
  };

  const nextMessage = async (connection: LiveConnection): Promise<Unsure | undefined> => {
    const maxMessage = (connection.nc.info?.max_payload ?? 1 << 20) - MESSAGE_OVERHEAD_BYTES;
    const maxBytes = Math.min(MESSAGE_TARGET_BYTES, maxMessage);
    const batch = await source.outgoing({ maxItems: MESSAGE_ITEMS_MAX, maxBytes });
    const items = fitting(batch.items, maxBytes);
    if (items.length === 0) return undefined;
    if (items[0]!.length > maxMessage) {
      throw refusedAs("network.unavailable", undefined, refusal("network.small_messages", { limitBytes: maxMessage }));
    }
    const digests = items.map(sha256);
    const id = messageId(keys, digests);
    sameRounds = id === previousRound ? sameRounds + 1 : 0;
    previousRound = id;
    if (sameRounds >= STUCK_ROUNDS) {
      throw refusedAs("network.unavailable", undefined, refusal("network.keeps_changes"));
    }
    return { message: sealLogMessage(keys.sealKey, subject, items), id, digests, exact: batch.exact };
  };

  /** One message. False when there was nothing to publish. */
  const publishOne = async (connection: LiveConnection): Promise<boolean> => {
    if (unsure) {
      // Read to the tail: if it was stored after all, the source no longer lists its items. Only then send it again.
      await follower.checkTail();
      const still = await source.outgoing({ maxItems: MESSAGE_ITEMS_MAX, maxBytes: MESSAGE_TARGET_BYTES });
      const waiting = new Set(still.items.map((item) => sha256(item).toHex()));
      if (!unsure.digests.every((digest) => waiting.has(digest.toHex()))) unsure = undefined;
    } else if (!follower.state().atTail) await follower.checkTail();
    const message = unsure ?? (await nextMessage(connection));
    unsure = undefined;
    if (!message) return false;
    setState("publishing");
    const readSeq = follower.cursor().seq;
    const expect = message.exact ? { expect: { lastSubjectSequence: readSeq } } : {};
    try {
      const ack = await connection.js.publish(subject, message.message, { msgID: message.id, ...expect });
      // It stood there before, and was read: here it was no longer known.
      if (ack.seq <= readSeq) await follower.readAgain(ack.seq);
      else await follower.reached(ack.seq);
    } catch (error) {
      if (isConflict(error)) {
        sameRounds = 0; // not stored, so not being read back says nothing
        await follower.checkTail();
        return true;
      }
      unsure = message;
      throw error;
    }
    return true;
  };

  const run = async () => {
    let retryMs = RETRY_FIRST_MS;
    while (!closing.signal.aborted) {
      const connection = await link.online(closing.signal).catch(() => undefined); // rejects when closing
      if (!connection) return;
      const { promise } = woken;
      try {
        const published = await publishOne(connection);
        retryMs = RETRY_FIRST_MS;
        if (published) continue;
        setState("idle");
        await promise;
        woken = Promise.withResolvers();
      } catch (error) {
        if (closing.signal.aborted) return;
        const failure = error instanceof SvcError ? error : networkFailure(error);
        if (!connection.signal.aborted) {
          deps.log.warn("network: publishing failed", { err: failure });
          setState("failing", failure);
        } else retryMs = RETRY_FIRST_MS;
        sameRounds = 0;
        await pause(deps.timers, retryMs, closing.signal);
        retryMs = Math.min(RETRY_MAX_MS, retryMs * 2);
      }
    }
  };
  const wake = (): void => woken.resolve();
  follower.onReset(wake);
  const running = run();

  return {
    state: () => state,
    wake,
    [Symbol.asyncDispose]: async () => {
      closing.abort();
      woken.resolve();
      await running;
    },
  };
}

/** The longest run of items from the first that fits, at least one. */
function fitting(items: readonly Uint8Array[], maxBytes: number): readonly Uint8Array[] {
  let bytes = 0;
  let count = 0;
  for (const item of items) {
    bytes += 4 + item.length;
    if (count > 0 && (bytes > maxBytes || count === MESSAGE_ITEMS_MAX)) break;
    count++;
  }
  return items.slice(0, count);
}
