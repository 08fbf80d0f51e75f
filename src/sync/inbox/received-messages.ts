import type { Clock } from "../../base/clock.ts";
import type { AccountId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Account } from "../../crypto/account.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { type InboxBox, openInboxMessage } from "./inbox-messages.ts";

/** Taken inbox messages that are remembered; the inbox forgets after 90 days. */
const REMEMBERED = 4096;

/**
 * Who takes inbox messages, by their kind. A handler is called again after a crash, so taking a message twice must do nothing
 * more.
 */
export type InboxHandlers = ReadonlyMap<string, (from: AccountId, body: JsonObject) => Promise<void>>;

interface ReceivedMessagesDeps {
  readonly account: Account;
  readonly box: Pick<InboxBox, "isTaken" | "noteTaken">;
  readonly handlers: InboxHandlers;
  readonly clock: Clock;
  readonly log: Log;
}

/** Takes inbox messages to this account (SYNC-12); what was taken is not taken again. */
export type ReceivedMessages = ReturnType<typeof createReceivedMessages>;

export function createReceivedMessages({ account, box, handlers, clock, log }: ReceivedMessagesDeps) {
  return {
    /**
     * Takes a message. `giver` is the account that handed it over, which then must be its author; it is undefined where anybody
     * may have left it.
     */
    async take(bytes: Uint8Array, giver?: AccountId): Promise<void> {
      const sealed = new Uint8Array(bytes);
      const id = sha256(sealed);
      if (box.isTaken(id)) return;
      const received = openInboxMessage(account, sealed);
      if (giver !== undefined && received?.from !== giver) {
        log.debug("inboxMessages: a peer handed over what it did not write", { giver });
        return;
      }
      const handler = received && handlers.get(received.message.kind);
      if (received && handler) await handler(received.from, received.message.body);
      else log.debug("inbox: one was not understood", { kind: received?.message.kind });
      await box.noteTaken(id, clock.nowMs(), REMEMBERED);
    },
  };
}
