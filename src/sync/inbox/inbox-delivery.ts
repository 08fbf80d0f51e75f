import { bytesToUtf8, utf8ToBytes } from "../../base/bytes.ts";
import type { Log } from "../../base/log.ts";
import type { Service } from "../../base/service.ts";
import { waitAtMost } from "../../base/timers.ts";
import type { Account } from "../../crypto/account.ts";
import type { Json } from "../../protocol/json.ts";
import type { Replica } from "../../space/port/replica.ts";
import { parseLogCursor } from "../network/log-cursor.ts";
import type { Inbox } from "../network/network-inbox.ts";
import type { NetworkStore } from "../network/network-store.ts";
import type { Outbox } from "./outbox.ts";
import type { ReceivedMessages } from "./received-messages.ts";

const CURSOR = "inbox-cursor";
const RETRY_MS = 60_000;
const CAUGHT_UP_MS = 5_000;

interface InboxDeliveryDeps {
  readonly account: Account;
  /** The account's own space, in which it is noted how far the inbox was read. */
  readonly tech: Replica;
  readonly network: Pick<NetworkStore, "state" | "onState" | "openInbox" | "sendToInbox">;
  readonly outbox: Outbox;
  readonly received: ReceivedMessages;
  readonly log: Log;
}

/** Inbox messages over the network: this account's inbox is followed, and what waits in the outbox is sent. */
export interface InboxDelivery extends Service {
  /** Resolves when everything in the inbox was taken, if the network is reached; waits for that a moment at most. */
  caughtUp(): Promise<void>;
}

export function createInboxDelivery(deps: InboxDeliveryDeps): InboxDelivery {
  const { account, tech, network, outbox, received, log } = deps;
  let inbox: Inbox | undefined;
  let retry: ReturnType<typeof setInterval> | undefined;
  let sending: Promise<void> | undefined;
  /** Something was written since the outbox was read last. */
  let more = false;
  let stopped = false;
  const unfollow: (() => void)[] = [];
  const isOnline = (): boolean => !stopped && network.state().phase === "online";

  const sendAll = async (): Promise<void> => {
    while (more) {
      more = false;
      for (const { id, receiver, sealed } of outbox.waiting()) {
        if (!isOnline()) return;
        await network.sendToInbox(receiver, sealed);
        await outbox.drop(id);
      }
    }
  };

  /** Sends what waits; a message that cannot be sent now waits on. */
  const flush = (): void => {
    // Without a network everything waits: reading all of it for each that comes would cost more with each.
    if (!isOnline()) return;
    more = true;
    sending ??= sendAll()
      .catch((error: unknown) => log.debug("inboxMessages: one waits to be sent", { err: error }))
      .finally(() => {
        sending = undefined;
        if (more) flush();
      });
  };

  const follow = (): Inbox => {
    const text = bytesToUtf8(tech.note(CURSOR) ?? new Uint8Array(0));
    const putCursor = (cursor: unknown): Promise<void> =>
      tech.write((write) => write.putNote(CURSOR, utf8ToBytes(JSON.stringify(cursor))));
    return network.openInbox({
      accountPublicKey: account.signer.publicKey,
      cursor: text ? parseLogCursor(JSON.parse(text) as Json) : undefined,
      port: {
        async deliver(messages, cursor) {
          for (const message of messages) await received.take(message);
          await putCursor(cursor);
        },
        reset: putCursor,
        changed: () => {},
      },
    });
  };

  return {
    name: "inbox",
    start() {
      inbox = follow();
      retry = setInterval(flush, RETRY_MS);
      unfollow.push(
        outbox.onChange((change) => {
          if (change === "more") flush();
        }),
        network.onState(({ phase }) => {
          if (phase === "online") flush();
        }),
      );
    },
    async stop() {
      stopped = true;
      clearInterval(retry);
      for (const stop of unfollow) stop();
      await inbox?.[Symbol.asyncDispose]();
      await sending;
    },

    async caughtUp() {
      if (!inbox || inbox.state().atTail || !isOnline()) return;
      const failed = (error: unknown) => log.debug("inbox: it was not read to its end", { err: error });
      await waitAtMost(CAUGHT_UP_MS, inbox.round().catch(failed));
    },
  };
}
