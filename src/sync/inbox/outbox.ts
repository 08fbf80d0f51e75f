import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import { createEvents } from "../../base/events.ts";
import type { AccountId } from "../../base/ids.ts";
import type { Account } from "../../crypto/account.ts";
import { parseAccountId } from "../../crypto/account-id.ts";
import { sha256 } from "../../crypto/hash.ts";
import { type InboxBox, type InboxMessage, type OutgoingMessage, sealInboxMessage } from "./inbox-messages.ts";

interface OutboxDeps {
  readonly account: Account;
  readonly box: Pick<InboxBox, "outgoing" | "put" | "drop">;
  readonly clock: Clock;
  /**
   * Whether a network is configured. Messages that a device was handed then wait for the network as well, since another device
   * of the account may be reached in no other way.
   */
  readonly hasNetwork: boolean;
}

/** What became of the outbox: there is a message more, or one less that is still to be handed to a device. */
type OutboxChange = "more" | "less";

/** Inbox messages that are to be sent (SYNC-12). They survive a restart. */
export type Outbox = ReturnType<typeof createOutbox>;

export function createOutbox({ account, box, clock, hasNetwork }: OutboxDeps) {
  /** Ids of waiting messages that a device of the receiver has taken: they still wait for the network. */
  const handed = new Set<string>();
  const events = createEvents<{ changed: [change: OutboxChange] }>();
  const changed = (change: OutboxChange): void => events.emit("changed", change);

  const drop = async (id: Uint8Array): Promise<void> => {
    await box.drop(id);
    handed.delete(bytesToHex(id));
    changed("less");
  };

  /** Messages that no device of their receiver has taken yet. */
  const unhanded = (): OutgoingMessage[] => box.outgoing().filter(({ id }) => !handed.has(bytesToHex(id)));

  return {
    /** Durable when it resolves; sent as soon as the network is there. Throws RangeError above 32 KiB. */
    async send(to: AccountId, message: InboxMessage): Promise<void> {
      const receiver = parseAccountId(to);
      if (!receiver) throw new RangeError("an inbox message goes to an account id");
      const sealed = sealInboxMessage(account, receiver, message, clock.nowMs());
      await box.put({ id: sha256(sealed), receiver, sealed });
      changed("more");
    },

    /** Calls back when there is another message to be handed over, or one less. Returns how to stop. */
    onChange: (listener: (change: OutboxChange) => void): (() => void) => events.on("changed", listener),

    /** All messages that wait for the network. */
    waiting: (): OutgoingMessage[] => box.outgoing(),
    /** Forgets a message that was sent. */
    drop,

    /** Public keys of the accounts for which messages wait that none of their devices has taken. */
    receivers: (): Uint8Array[] => [
      ...new Map(unhanded().map(({ receiver }) => [bytesToHex(receiver), receiver])).values(),
    ],
    /** Hands the messages that wait for an account to a device of it. */
    async handOver(account: AccountId, give: (sealed: Uint8Array) => Promise<void>): Promise<void> {
      const key = parseAccountId(account);
      if (!key) return;
      for (const { id, receiver, sealed } of unhanded()) {
        if (!equalBytes(receiver, key)) continue;
        await give(sealed);
        if (hasNetwork) {
          handed.add(bytesToHex(id));
          changed("less");
        } else await drop(id);
      }
    },
  };
}
