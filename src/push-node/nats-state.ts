import { readFileSync } from "node:fs";
import { type KV, Kvm } from "@nats-io/kv";
import { type ConnectionOptions, connect, credsAuthenticator } from "@nats-io/transport-node";
import { base64ToBytes, bytesToBase64, bytesToHex, utf8ToBytes } from "../base/bytes.ts";
import { randomBytes } from "../base/random.ts";
import { sha256 } from "../crypto/hash.ts";
import { createDueIndex } from "./nats-due-index.ts";
import { isKeyTaken } from "./nats-key-taken.ts";
import type { Device, PushState, SpaceTopic } from "./state.ts";

/** The store itself forgets used names, after longer than any of them matters. */
const SPENT_TTL_MS = 3 * 60 * 60_000;

export interface NatsStateOptions {
  readonly url: string;
  /** Name of the key-value bucket; a second bucket holds used names. */
  readonly bucket?: string;
  readonly credsFile?: string;
}

/**
 * The state that several nodes share: a key-value bucket of NATS JetStream. A token belongs to the device that the
 * token's own key names, so a crash between two keys never leaves a token with two accounts.
 */
export async function createNatsState(options: NatsStateOptions): Promise<PushState> {
  const nc = await connect(connectionOf(options));
  const bucket = options.bucket ?? "svc-push";
  const kvm = new Kvm(nc);
  const kv = await kvm.create(bucket, { history: 1 });
  const spent = await kvm.create(`${bucket}-spent`, { history: 1, ttl: SPENT_TTL_MS });
  const due = await createDueIndex(kv);
  const devices = createDevices(kv);
  const topics = createTopics(kv);
  return {
    async secret() {
      await createOnce(kv, "secret", bytesToBase64(randomBytes(32)));
      return base64ToBytes((await kv.get("secret"))!.string())!;
    },
    spend: (name) => createOnce(spent, nameKey(name), ""),
    ...devices,
    ...topics,
    async accept(name, _untilMs, deliveries) {
      if (await spent.get(nameKey(name))) return false;
      // Deliveries get the same ids each time, so the sender may repeat the message after a crash before the name is used
      // up.
      await Promise.all(deliveries.map((delivery) => due.add(delivery)));
      return createOnce(spent, nameKey(name), "");
    },
    takeDue: due.take,
    nextDueMs: async () => due.nextDueMs(),
    defer: (delivery, dueMs) => due.put({ ...delivery, dueMs, attempts: delivery.attempts + 1 }),
    finish: (delivery) => due.drop(delivery.id),
    pending: async () => due.size(),
    sweep: async () => {},
    async close() {
      due.close();
      // Every write was acknowledged, so nothing is lost if the server is gone.
      await nc.drain().catch(() => nc.close());
    },
  };
}

function connectionOf({ url, credsFile }: NatsStateOptions): ConnectionOptions {
  const parts = url.split(",").map((part) => new URL(part.includes("://") ? part.trim() : `nats://${part.trim()}`));
  const { username, password } = parts[0]!;
  return {
    servers: parts.map(({ hostname, port }) => `${hostname}:${port || 4222}`),
    name: "svc push node",
    maxReconnectAttempts: -1,
    ...(parts.some(({ protocol }) => protocol === "tls:") ? { tls: {} } : {}),
    ...(credsFile === undefined ? {} : { authenticator: credsAuthenticator(readFileSync(credsFile)) }),
    ...(username === "" ? {} : { user: decodeURIComponent(username), pass: decodeURIComponent(password) }),
  };
}

/** Resolves to whether the key was new; an existing value stays. */
async function createOnce(kv: KV, key: string, value: string): Promise<boolean> {
  try {
    await kv.create(key, value);
    return true;
  } catch (error) {
    if (isKeyTaken(error)) return false;
    throw error;
  }
}

/** Names are hashed, because they may contain what keys may not. */
const nameKey = (name: string): string => bytesToHex(sha256(utf8ToBytes(name)));

function createDevices(kv: KV): Pick<PushState, "putDevice" | "dropDevice" | "deviceOf" | "devicesOf"> {
  const keyOf = (account: string, device: string) => `device.${account}.${device}`;
  const tokenKey = ({ platform, token }: Device) => `token.${nameKey(`${platform} ${token}`)}`;
  const read = async (account: string, device: string): Promise<Device | undefined> => {
    const entry = await kv.get(keyOf(account, device));
    return entry?.operation === "PUT" ? entry.json<Device>() : undefined;
  };
  const holderOf = async (device: Device): Promise<string | undefined> => {
    const entry = await kv.get(tokenKey(device));
    return entry?.operation === "PUT" ? entry.string() : undefined;
  };
  const deviceOf = async (account: string, name: string): Promise<Device | undefined> => {
    const device = await read(account, name);
    return device && (await holderOf(device)) === keyOf(account, name) ? device : undefined;
  };
  return {
    deviceOf,
    async putDevice(device) {
      const key = keyOf(device.account, device.device);
      const [before, holder] = await Promise.all([read(device.account, device.device), holderOf(device)]);
      await kv.put(key, JSON.stringify(device));
      await kv.put(tokenKey(device), key); // from here on the token belongs to this device
      if (holder !== undefined && holder !== key) await kv.purge(holder);
      if (before && tokenKey(before) !== tokenKey(device) && (await holderOf(before)) === key)
        await kv.purge(tokenKey(before));
    },
    async dropDevice(account, name) {
      const device = await read(account, name);
      if (!device) return;
      await kv.purge(keyOf(account, name));
      if ((await holderOf(device)) === keyOf(account, name)) await kv.purge(tokenKey(device));
    },
    async devicesOf(account) {
      const names: string[] = [];
      for await (const key of await kv.keys(`device.${account}.*`)) names.push(key.split(".")[2]!);
      const devices = await Promise.all(names.sort().map((name) => deviceOf(account, name)));
      return devices.filter((device) => device !== undefined);
    },
  };
}

function createTopics(kv: KV): Pick<PushState, "addTopics" | "dropTopics" | "topicCount" | "topicsOf" | "subscribers"> {
  const keyOf = (account: string, spaceKey: string, topic: string) => `topic.${spaceKey}.${topic}.${account}`;
  const allOf = async (account: string): Promise<SpaceTopic[]> => {
    const found: SpaceTopic[] = [];
    for await (const key of await kv.keys(`topic.*.*.${account}`)) {
      const [, spaceKey, topic] = key.split(".");
      found.push({ spaceKey: spaceKey!, topic: topic! });
    }
    return found.sort(compareTopics);
  };
  return {
    async addTopics(account, spaceKey, topics) {
      await Promise.all(topics.map((topic) => kv.put(keyOf(account, spaceKey, topic), "")));
    },
    async dropTopics(account, spaceKey, topics) {
      await Promise.all(topics.map((topic) => kv.purge(keyOf(account, spaceKey, topic))));
    },
    topicCount: async (account) => (await allOf(account)).length,
    async topicsOf(account, after, limit) {
      const all = await allOf(account);
      return all.filter((one) => !after || compareTopics(one, after) > 0).slice(0, limit);
    },
    async subscribers(spaceKey, topics) {
      const wanted = new Set(topics);
      const found = new Set<string>();
      for await (const key of await kv.keys(`topic.${spaceKey}.>`)) {
        const [, , topic, account] = key.split(".");
        if (wanted.has(topic!)) found.add(account!);
      }
      return [...found];
    },
  };
}

function compareTopics(a: SpaceTopic, b: SpaceTopic): number {
  if (a.spaceKey !== b.spaceKey) return a.spaceKey < b.spaceKey ? -1 : 1;
  return a.topic === b.topic ? 0 : a.topic < b.topic ? -1 : 1;
}
