import { base58ToBytes } from "../base/base58.ts";
import { base64UrlToBytes, bytesToHex, utf8ToBytes } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import { createRateLimit } from "../base/rate-limit.ts";
import { sha256 } from "../crypto/hash.ts";
import { verify } from "../crypto/sign.ts";
import {
  type DeliveryBody,
  type MessageBody,
  type NodeTokenBody,
  type Platform,
  PUSH_BOUNDS,
  type TopicsBody,
  type TopicsPage,
} from "../protocol/push-node.ts";
import { messageStatement, topicsStatement } from "../push-link/statements.ts";
import { collapseIdOf } from "./delivery-worker.ts";
import type { NodeLimits } from "./node-config.ts";
import type { Outcome, Provider } from "./provider.ts";
import { Refusal } from "./refusal.ts";
import type { Delivery, Device, PushState, SpaceTopic } from "./state.ts";

/** A message is worth delivering for an hour; its id is remembered somewhat longer. */
const MESSAGE_MS = 60 * 60_000;
const KNOWN_MS = 2 * MESSAGE_MS;

interface ServiceDeps {
  readonly state: PushState;
  readonly secret: Uint8Array;
  readonly audience: () => string;
  readonly limits: NodeLimits;
  readonly clock: Clock;
  readonly providers: Readonly<Record<Platform, Provider | undefined>>;
  /** Ids of nodes that may deliver with this node's credentials. */
  readonly downstreams: ReadonlySet<string>;
  /** Announces new deliveries. */
  kick(): void;
}

/** What the node does for an account that has proved itself. */
export type PushService = ReturnType<typeof createPushService>;

export function createPushService(deps: ServiceDeps) {
  const { state, limits, clock, audience } = deps;
  const recipientsPerAccount = createRateLimit(clock, {
    perSecond: limits.recipientsPerHour / 3600,
    burst: limits.recipientsPerHour,
  });

  const newAccounts = createRateLimit(clock, {
    perSecond: limits.newAccountsPerHour / 3600,
    burst: limits.newAccountsPerHour,
  });

  return {
    /**
     * Registers a device's token. `address` is the address of the request: an account costs nothing, so one address may
     * add only a limited number.
     */
    async setToken(account: string, body: NodeTokenBody, address: string): Promise<void> {
      const known = await state.devicesOf(account);
      const waitMs = known.length === 0 ? newAccounts.take(address) : 0;
      if (waitMs > 0) throw new Refusal("push.too_often", "Too many new accounts from this address", waitMs);
      const isNew = !known.some(({ device }) => device === body.device);
      if (isNew && known.length >= limits.devicesPerAccount)
        throw new Refusal("push.quota", `An account has at most ${limits.devicesPerAccount} devices; drop one first`);
      const same = known.find(({ device, token }) => device === body.device && token === body.token);
      const { platform, token, device } = body;
      const registeredMs = Math.min(body.registeredMs, clock.nowMs());
      const sandbox = same?.sandbox === undefined ? {} : { sandbox: same.sandbox };
      await state.putDevice({ account, device, platform, token, registeredMs, ...sandbox });
    },

    dropToken: (account: string, device: string): Promise<void> => state.dropDevice(account, device),

    async devices(account: string): Promise<{ devices: { device: string; platform: Platform }[] }> {
      const devices = await state.devicesOf(account);
      return { devices: devices.map(({ device, platform }) => ({ device, platform })) };
    },

    /** Adds and drops topics that an account watches; drops come first. */
    async changeTopics(account: string, body: TopicsBody): Promise<void> {
      const { add = [], drop = [] } = body;
      const named = [...add, ...drop].reduce((sum, { topics }) => sum + topics.length, 0);
      if (named > PUSH_BOUNDS.requestTopics)
        throw new Refusal("push.bad_request", `A request names at most ${PUSH_BOUNDS.requestTopics} topics`);
      for (const { spaceKey, topics, signature } of add) {
        requireSpaceKey(spaceKey, "push-topics", topicsStatement(audience(), spaceKey, account, topics), signature);
        for (const topic of topics) requireOwn(account, topic);
      }
      if (add.length > 0 && (await state.devicesOf(account)).length === 0) throw new Refusal("push.no_token");
      for (const { spaceKey, topics } of drop) await state.dropTopics(account, spaceKey, topics);
      const added = add.reduce((sum, { topics }) => sum + topics.length, 0);
      if (added > 0 && (await state.topicCount(account)) + added > limits.topicsPerAccount)
        throw new Refusal(
          "push.quota",
          `An account watches at most ${limits.topicsPerAccount} topics; drop some first`,
        );
      for (const { spaceKey, topics } of add) await state.addTopics(account, spaceKey, topics);
    },

    async topics(account: string, after: SpaceTopic | undefined): Promise<TopicsPage> {
      const topics = await state.topicsOf(account, after, PUSH_BOUNDS.requestTopics);
      return { topics, more: topics.length === PUSH_BOUNDS.requestTopics };
    },

    /**
     * Accepts a message: durable when it resolves. A repeated message is accepted only once. Resolves to the number of
     * devices.
     */
    async send(account: string, message: MessageBody): Promise<{ devices: number }> {
      const statement = messageStatement(audience(), account, message);
      requireSpaceKey(message.spaceKey, "push-message", statement, message.signature);
      if ((await state.pending()) >= limits.pendingDeliveries)
        throw new Refusal("push.unavailable", "The node has too much on its way already", 10_000);
      const devices = await recipientsOf(account, message);
      const waitMs = recipientsPerAccount.take(account, Math.min(devices.length, limits.recipientsPerHour));
      if (waitMs > 0) throw new Refusal("push.too_often", "The account has notified too many devices", waitMs);
      const nowMs = clock.nowMs();
      const deliveries = devices.map((device) => deliveryOf(account, device, message, nowMs));
      if (await state.accept(`message/${account}/${message.id}`, nowMs + KNOWN_MS, deliveries)) deps.kick();
      return { devices: devices.length };
    },

    /** Delivers for another node at once; that node keeps what is not accepted. */
    async deliver(node: string, body: DeliveryBody): Promise<Outcome> {
      if (!deps.downstreams.has(node)) throw new Refusal("push.not_downstream");
      const provider = deps.providers[body.platform];
      if (!provider) return { kind: "refused", reason: `no credentials for ${body.platform} here either` };
      const { id, kind, platform, token, registeredMs, chat, spaceKey, keyId, sealed } = body;
      const nowMs = clock.nowMs();
      const device: Device = { account: node, device: "", platform, token, registeredMs };
      const delivery: Delivery = {
        ...{ id, kind, spaceKey, chat, keyId, sealed, account: node, device: "" },
        ...{ attempts: 0, dueMs: nowMs, expiresMs: nowMs + MESSAGE_MS },
      };
      return provider.send({ delivery, device, collapseId: collapseIdOf(deps.secret, device, chat) });
    },
  };

  /** A message goes to all others who watch its topics; a `read` goes to the account's own other devices. */
  async function recipientsOf(account: string, message: MessageBody): Promise<Device[]> {
    const watching = await state.subscribers(message.spaceKey, message.topics);
    const accounts = watching.filter((watcher) => (message.kind === "read") === (watcher === account));
    if (accounts.length > limits.recipientsPerMessage) accounts.length = limits.recipientsPerMessage;
    const devices = (await Promise.all(accounts.map((watcher) => state.devicesOf(watcher)))).flat();
    return message.kind === "read" ? devices.filter(({ device }) => device !== message.device) : devices;
  }
}

function requireSpaceKey(
  spaceKey: string,
  kind: "push-topics" | "push-message",
  statement: Uint8Array,
  signature: string,
): void {
  const publicKey = base58ToBytes(spaceKey);
  const bytes = base64UrlToBytes(signature);
  if (!publicKey || !bytes || !verify(publicKey, kind, statement, bytes)) throw new Refusal("push.forbidden");
}

/** Only the account itself may watch a topic that is for that account alone. */
function requireOwn(account: string, topic: string): void {
  const narrowed = topic.split("/").at(-1)!;
  if (narrowed.startsWith("A") && narrowed !== account)
    throw new Refusal("push.forbidden", "A topic that names an account is for that account alone");
}

function deliveryOf(account: string, device: Device, message: MessageBody, nowMs: number): Delivery {
  const { kind, spaceKey, chat, keyId, sealed } = message;
  const name = utf8ToBytes(`${account}/${message.id}/${device.account}/${device.device}`);
  return {
    id: bytesToHex(sha256(name)).slice(0, 32),
    account: device.account,
    device: device.device,
    ...{ kind, spaceKey, chat, keyId, sealed },
    attempts: 0,
    dueMs: nowMs,
    expiresMs: nowMs + MESSAGE_MS,
  };
}
