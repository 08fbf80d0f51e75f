import { bytesToHex, bytesToUtf8, equalBytes, utf8ToBytes } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import { encodeCbor } from "../../base/dag-cbor.ts";
import type { AccountId } from "../../base/ids.ts";
import { exceedsDepth } from "../../base/json-depth.ts";
import type { Log } from "../../base/log.ts";
import type { Account } from "../../crypto/account.ts";
import { accountIdOf, parseAccountId } from "../../crypto/account-id.ts";
import { openWith, sealTo } from "../../crypto/box.ts";
import { sha256 } from "../../crypto/hash.ts";
import { admitPublicKey } from "../../crypto/public-key.ts";
import { isSignedBy, readEnvelope, signEnvelope } from "../../crypto/signed-envelope.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { isJsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import type { Replica } from "../../space/port/replica.ts";
import { parseLogCursor } from "../network/log-cursor.ts";
import type { Inbox } from "../network/network-inbox.ts";
import type { NetworkStore } from "../network/network-store.ts";

/**
 * A message from one account to another: signed, then sealed to the receiver, left in its inbox on the network and handed
 * to its devices on the LAN.
 */
export interface InboxMessage {
  readonly kind: string;
  readonly body: JsonObject;
}

export interface OutgoingMessage {
  /** Hash of the sealed bytes. */
  readonly id: Uint8Array;
  /** The receiver's public key. */
  readonly receiver: Uint8Array;
  readonly sealed: Uint8Array;
}

/** What is to be sent and what was taken, kept on this device. What is written is durable when it resolves. */
export interface InboxBox {
  outgoing(): OutgoingMessage[];
  put(message: OutgoingMessage): Promise<void>;
  drop(id: Uint8Array): Promise<void>;
  isTaken(id: Uint8Array): boolean;
  /** So many of the newest are remembered. */
  noteTaken(id: Uint8Array, nowMs: number, remembered: number): Promise<void>;
}

export interface InboxMessagesDeps {
  readonly account: Account;
  /** The account's own space, in which it is noted how far the inbox was read. */
  readonly tech: Replica;
  readonly box: InboxBox;
  readonly clock: Clock;
  readonly log: Log;
}

const CURSOR = "inbox-cursor";
const CONTEXT = "svc/inbox/v1";
const FORMAT = 1;
const RETRY_MS = 60_000;
const CAUGHT_UP_MS = 5_000;
const MAX_BYTES = 32 << 10;
/** Taken inbox messages that are remembered; the inbox forgets after 90 days. */
const REMEMBERED = 4096;

/** A message to this account and who signed it, or undefined for bytes that are none. */
export function openInboxMessage(
  { seed, signer }: Pick<Account, "seed" | "signer">,
  sealed: Uint8Array,
): { from: AccountId; message: InboxMessage } | undefined {
  const signed = sealed.length <= MAX_BYTES * 2 ? openWith(seed, sealed, CONTEXT) : undefined;
  if (!signed) return undefined;
  try {
    const envelope = readEnvelope(signed);
    const { v, kind, to, from, body } = envelope.header;
    if (envelope.bodyHash || v !== FORMAT || typeof kind !== "string" || !(body instanceof Uint8Array))
      return undefined;
    if (!(to instanceof Uint8Array) || !equalBytes(to, signer.publicKey)) return undefined;
    if (!(from instanceof Uint8Array) || !admitPublicKey(from)) return undefined;
    if (!isSignedBy(from, "inbox", envelope)) return undefined;
    const text = bytesToUtf8(body);
    const parsed = text === undefined || exceedsDepth(text, LIMITS.bodyDepth) ? undefined : (JSON.parse(text) as Json);
    return isJsonObject(parsed) ? { from: accountIdOf(from), message: { kind, body: parsed } } : undefined;
  } catch (error) {
    if (error instanceof RangeError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Inbox messages between accounts (SYNC-12). What is to be sent survives a restart; what was taken is not taken again. */
export type InboxMessages = ReturnType<typeof createInboxMessages>;

export function createInboxMessages(deps: InboxMessagesDeps) {
  const { account, tech, box, clock, log } = deps;
  const handlers = new Map<string, (from: AccountId, body: JsonObject) => Promise<void>>();
  let network: NetworkStore | undefined;
  let hasNetwork = false;
  let inbox: Inbox | undefined;
  let retry: ReturnType<typeof setInterval> | undefined;
  let sending: Promise<void> | undefined;
  /** Ids of waiting inbox messages that a device of the receiver has taken: they still wait for the network. */
  const handed = new Set<string>();
  const listeners = new Set<() => void>();
  const outboxChanged = (): void => {
    for (const listener of listeners) listener();
  };
  /** Something was written since the outbox was read last. */
  let more = false;

  const wrap = (to: Uint8Array, { kind, body }: InboxMessage): Uint8Array => {
    const header = encodeCbor({
      v: FORMAT,
      kind,
      to,
      from: account.signer.publicKey,
      time: clock.nowMs(),
      body: utf8ToBytes(JSON.stringify(body)),
    });
    return sealTo(to, signEnvelope("inbox", header, account.signer), CONTEXT);
  };

  /** `giver`: the account that handed it over, which then must be its author; undefined where anybody may have left it. */
  const take = async (sealed: Uint8Array, giver?: AccountId): Promise<void> => {
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
  };

  const drop = async (id: Uint8Array): Promise<void> => {
    await box.drop(id);
    handed.delete(bytesToHex(id));
    outboxChanged();
  };

  /** Messages that no device of their receiver has taken yet. */
  const unhanded = (): OutgoingMessage[] => box.outgoing().filter(({ id }) => !handed.has(bytesToHex(id)));

  /** Sends what waits; a message that cannot be sent now waits on. */
  const flush = (): Promise<void> => {
    // Without a network everything waits: reading all of it for each that comes would cost more with each.
    if (network?.state().phase !== "online") return sending ?? Promise.resolve();
    more = true;
    sending ??= (async () => {
      while (more) {
        more = false;
        for (const { id, receiver, sealed } of box.outgoing()) {
          if (network?.state().phase !== "online") return;
          await network.sendToInbox(receiver, sealed);
          await drop(id);
        }
      }
    })()
      .catch((error: unknown) => log.debug("inboxMessages: one waits to be sent", { err: error }))
      .finally(() => {
        sending = undefined;
        if (more) void flush();
      });
    return sending;
  };

  return {
    /** Durable when it resolves; sent as soon as the network is there. Throws RangeError above 32 KiB. */
    async send(to: AccountId, message: InboxMessage): Promise<void> {
      const receiver = parseAccountId(to);
      if (!receiver) throw new RangeError("an inbox message goes to an account id");
      const sealed = wrap(receiver, message);
      if (sealed.length > MAX_BYTES) throw new RangeError(`an inbox message of ${sealed.length} bytes`);
      await box.put({ id: sha256(sealed), receiver, sealed });
      outboxChanged();
      void flush();
    },

    /** Called when there is another inbox message to be handed over, or one less. */
    onOutbox: (listener: () => void): void => void listeners.add(listener),
    /** Public keys of the accounts for which inbox messages wait that none of their devices has taken. */
    receivers: (): Uint8Array[] => [
      ...new Map(unhanded().map(({ receiver }) => [bytesToHex(receiver), receiver])).values(),
    ],
    /**
     * Hands the messages that wait for an account to a device of it. Where there is a network they wait for that as well,
     * since another device of the account may be reached in no other way.
     */
    async handOver(account: AccountId, give: (sealed: Uint8Array) => Promise<void>): Promise<void> {
      const key = parseAccountId(account);
      if (!key) return;
      for (const { id, receiver, sealed } of unhanded()) {
        if (!equalBytes(receiver, key)) continue;
        await give(sealed);
        if (hasNetwork) {
          handed.add(bytesToHex(id));
          outboxChanged();
        } else await drop(id);
      }
    },
    /** Takes what a device of `giver` hands over. A message that `giver` did not write is not taken. */
    receive: (giver: AccountId, sealed: Uint8Array): Promise<void> => take(new Uint8Array(sealed), giver),

    /**
     * Registers who takes inbox messages of a kind. It is called again after a crash, so taking one twice must do nothing
     * more.
     */
    onMessage: (kind: string, handler: (from: AccountId, body: JsonObject) => Promise<void>): void =>
      void handlers.set(kind, handler),

    /** The network is there: from now on the inbox is followed, and waiting messages are sent. */
    connect(next: NetworkStore): void {
      network = next;
      hasNetwork = true;
      const text = bytesToUtf8(tech.note(CURSOR) ?? new Uint8Array(0));
      const putCursor = (cursor: unknown) =>
        tech.write((write) => write.putNote(CURSOR, utf8ToBytes(JSON.stringify(cursor))));
      inbox = next.openInbox({
        accountPublicKey: account.signer.publicKey,
        cursor: text ? parseLogCursor(JSON.parse(text) as Json) : undefined,
        port: {
          async deliver(messages, cursor) {
            for (const message of messages) await take(message);
            await putCursor(cursor);
          },
          reset: async (cursor) => void (await putCursor(cursor)),
          changed: () => {},
        },
      });
      retry = setInterval(() => void flush(), RETRY_MS);
      next.onState(({ phase }) => {
        if (phase === "online") void flush();
      });
    },

    /** Resolves when everything in the inbox was taken, if the network is reached; waits for that a moment at most. */
    async caughtUp(): Promise<void> {
      if (!inbox || inbox.state().atTail || network?.state().phase !== "online") return;
      const failed = (error: unknown) => log.debug("inbox: it was not read to its end", { err: error });
      await Promise.race([inbox.round().catch(failed), Bun.sleep(CAUGHT_UP_MS)]);
    },

    async close(): Promise<void> {
      clearInterval(retry);
      network = undefined;
      await inbox?.[Symbol.asyncDispose]();
      await sending;
    },
  };
}
