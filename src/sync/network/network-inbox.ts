import { bytesToBase32 } from "../../base/base32.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { ChannelDeps } from "./channel.ts";
import type { LogCursor } from "./log-cursor.ts";
import { createLogFollower, type LogState } from "./log-follower.ts";
import type { NatsLink } from "./nats-link.ts";
import { networkFailure } from "./network-error.ts";
import { INBOX_STREAM, inboxSubject } from "./subjects.ts";

/**
 * An account's inbox: a log that anybody may append to. Messages are sealed to the account, with their sender inside;
 * nothing here is trusted. Messages older than the stream's limits are gone, and after a reset those that remain are
 * delivered once more, so the receiver has to know which it has taken.
 */
interface InboxPort {
  deliver(messages: readonly Uint8Array[], cursor: LogCursor): Promise<void>;
  reset(cursor: LogCursor): Promise<void>;
  changed(): void;
}

export interface Inbox extends AsyncDisposable {
  state(): LogState;
  /** Resolves when everything in the inbox was delivered. */
  round(): Promise<void>;
}

export interface InboxOptions {
  readonly accountPublicKey: Uint8Array;
  readonly cursor?: LogCursor | undefined;
  readonly port: InboxPort;
}

export function createInbox(deps: ChannelDeps, options: InboxOptions): Inbox {
  const { port } = options;
  const follower = createLogFollower({
    link: deps.link,
    address: { stream: INBOX_STREAM, subject: inboxSubject(options.accountPublicKey) },
    cursor: options.cursor,
    log: deps.log,
    timers: deps.timers,
    nowMs: deps.nowMs,
    sink: {
      deliver: (messages, cursor) =>
        port.deliver(
          messages.map((message) => message.data),
          cursor,
        ),
      reset: (cursor) => port.reset(cursor),
      changed: () => port.changed(),
    },
  });
  const stop = deps.watch.watch(INBOX_STREAM, {
    checkedAtMs: () => follower.state().checkedAtMs,
    stale: () => follower.kick(),
    suspect: () => follower.reverify(),
  });
  return {
    state: () => follower.state(),
    round: () => follower.checkTail(),
    [Symbol.asyncDispose]: async () => {
      stop();
      await follower[Symbol.asyncDispose]();
    },
  };
}

/**
 * Appends to an account's inbox; resolves when the store acknowledged it. Sending the same bytes again within two
 * minutes stores them once. Throws `network.unavailable` or `network.forbidden`.
 */
export async function sendToInbox(link: NatsLink, accountPublicKey: Uint8Array, message: Uint8Array): Promise<void> {
  const connection = link.connection();
  if (!connection) throw networkFailure(undefined);
  try {
    const subject = inboxSubject(accountPublicKey);
    await connection.js.publish(subject, message, { msgID: bytesToBase32(sha256(message)).slice(0, 26) });
  } catch (error) {
    throw networkFailure(error);
  }
}
