import { createHmac } from "node:crypto";
import { bytesToBase64Url, bytesToHex } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { randomBytes } from "../../base/random.ts";
import type { Account } from "../../crypto/account.ts";
import { deriveAccountSecret } from "../../crypto/account-keys.ts";
import type { Platform } from "../../protocol/push-node.ts";
import { MessageReply, PUSH_PATHS } from "../../protocol/push-node.ts";
import { createNodeCalls } from "../../push-link/node-calls.ts";
import { messageStatement } from "../../push-link/statements.ts";
import { type OutboxRow, openPushOutboxStore } from "../../store/push-outbox-store.ts";
import { createNodeFollower } from "./node-follower.ts";
import { createOutbox } from "./outbox.ts";
import { cutText, sealPayload } from "./payload.ts";
import type { PushSpaces, SpacePushKeys } from "./port.ts";
import { createSubscriptionPlan } from "./subscription-plan.ts";
import { createTokenFile } from "./token-file.ts";
import { chatTag, topicsOfMessage, topicsOfReading } from "./topics.ts";

/** How long the node may take over one request. */
const REQUEST_MS = 15_000;

interface PushServiceDeps {
  /** The node's URL. */
  readonly url: string;
  readonly account: Account;
  readonly spaces: PushSpaces;
  readonly paths: { readonly token: string; readonly store: string };
  /** Whether this device was pruned from the account's registry. */
  isPruned(): boolean;
  readonly clock: Clock;
  readonly log: Log;
}

export interface PushSubscription {
  readonly spaceKey: string;
  readonly topic: string;
}

/** Push notifications of one device: its token, what its account watches, and what it has written that others wait for. */
export type PushService = ReturnType<typeof createPushService>;

export function createPushService(deps: PushServiceDeps) {
  const { account, spaces, clock, log } = deps;
  const store = openPushOutboxStore(deps.paths.store, {
    onDamage: (err) =>
      log.warn(
        "what waited for the push node is damaged: it is set aside beside its place, and its notifications are lost",
        { err, path: deps.paths.store },
      ),
    onRepair: (tables) =>
      log.warn("what waits for the push node was damaged on the disk: its copies took its place", { tables }),
    onFault: (err) => log.warn("what waits for the push node could not be noted", { err }),
  });
  const tokenFile = createTokenFile(deps.paths.token);
  const ending = new AbortController();
  const calls = createNodeCalls({
    ...{ url: deps.url, account: account.id, signer: account.signer, timeoutMs: REQUEST_MS },
    signal: ending.signal,
  });
  const tagOf = createDeviceTags(account);
  const plan = createSubscriptionPlan({
    spaces,
    accountId: account.id,
    onFault: (spaceId, error) => log.warn("a space's chats cannot be listed for push", { err: error, spaceId }),
  });
  const follower = createNodeFollower({
    ...{ calls, accountId: account.id, tokenFile, plan, store, tagOf, clock, log },
    ownTag: tagOf(account.peerId),
    isPruned: deps.isPruned,
  });

  /** Sends the message and keys as they are now: an edit is included, and a deletion drops the push. */
  const send = async (row: OutboxRow): Promise<void> => {
    const keys = spaces.of(row.spaceId)?.keys;
    if (!keys) return;
    const { spaceId, chatId, messageId } = row;
    if (row.kind === "read") {
      const sealed = sealPayload(keys.encKey, keys.encKeyId, { v: 1, read: true, spaceId, chatId });
      return post(row, keys, topicsOfReading(chatId, account.id), sealed);
    }
    const message = await spaces.message(spaceId, chatId, messageId);
    if (!message) return;
    const { sender } = message;
    const payload = { v: 1, spaceId, chatId, messageId, sender, text: cutText(message.text) } as const;
    const sealed = sealPayload(keys.encKey, keys.encKeyId, payload);
    await post(row, keys, topicsOfMessage(chatId, message.mentions), sealed);
  };

  const post = async (row: OutboxRow, keys: SpacePushKeys, topics: string[], sealed: string): Promise<void> => {
    const { id, kind } = row;
    const message = {
      ...{ id, kind, spaceKey: keys.publicKey, topics, chat: chatTag(row.chatId) },
      ...{ device: tagOf(account.peerId), keyId: keys.encKeyId, sealed },
    };
    const statement = messageStatement(calls.audience, account.id, message);
    const signature = bytesToBase64Url(keys.sign("push-message", statement));
    await calls.post(PUSH_PATHS.messages, MessageReply, { ...message, signature });
  };

  const outbox = createOutbox({ store, clock, log, newId: () => bytesToHex(randomBytes(16)), send });

  return {
    name: "push",
    async start(): Promise<void> {
      await outbox.start();
      await follower.start();
    },
    async stop(): Promise<void> {
      ending.abort();
      await Promise.all([outbox.stop(), follower.stop()]);
      await store.close();
    },
    /** Stores this device's token in place of another; the node is notified soon. */
    async setToken(platform: Platform, token: string): Promise<void> {
      await tokenFile.set({ platform, token, registeredMs: clock.nowMs() });
      follower.kick();
    },
    async revokeToken(): Promise<void> {
      await tokenFile.revoke();
      follower.kick();
    },
    async tokenStatus(): Promise<{ registered: boolean; platform?: Platform }> {
      const state = await tokenFile.read();
      return state.kind === "set" ? { registered: true, platform: state.platform } : { registered: false };
    },
    /** Returns what the account watches, by its current spaces and modes. */
    async subscriptions(): Promise<PushSubscription[]> {
      const planned = await plan.plan();
      return planned.flatMap(({ keys, topics }) => topics.map((topic) => ({ spaceKey: keys.publicKey, topic })));
    },
    messageWritten: (spaceId: SpaceId, chatId: string, messageId: string, mentions: readonly string[]): void =>
      outbox.queueMessage(spaceId, chatId, messageId, mentions),
    chatRead: (spaceId: string, chatId: string): void => outbox.queueReading(spaceId, chatId),
    devicePruned(peerId: string): void {
      store.addPruned(peerId);
      follower.kick();
    },
    /** Must be called when spaces, modes, chats or keys may have changed. */
    changed: follower.kick,
    spaceEnded(spaceId: SpaceId): void {
      outbox.dropSpace(spaceId);
      follower.kick();
    },
  };
}

/** What the node calls the account's devices: nobody but the account can tell which peer it is. */
function createDeviceTags(account: Account): (peerId: string) => string {
  const key = deriveAccountSecret(account.seed, "push");
  return (peerId) => createHmac("sha256", key).update(`device\0${peerId}`).digest("hex").slice(0, 32);
}
