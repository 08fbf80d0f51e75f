import { type Log, silentLog } from "../base/log.ts";
import { randomBytes } from "../base/random.ts";
import { openingPatiently } from "../store/database/locked-database.ts";
import { openPushNodeStore } from "../store/push-node-store.ts";
import type { Delivery, Device, PushState } from "./state.ts";

/** Creates the state of a single node, which shares it with no other. Waits for a while where another program has the file locked. */
export async function createSqliteState(path: string, log: Log = silentLog): Promise<PushState> {
  const store = await openingPatiently(() =>
    openPushNodeStore(path, {
      onRepair: (tables) =>
        log.warn("what the node keeps was damaged on the disk: its copies took its place", { tables }),
      onLost: (count) => log.warn("deliveries were damaged on the disk: nobody is notified of them", { count }),
      onFault: (err) => log.error("what the disk changed was not set right", { err }),
    }),
  );
  return {
    secret: async () => store.metaOr("secret", randomBytes(32)),
    spend: async (name, untilMs) => store.spend(name, untilMs),
    putDevice: async (device) =>
      void (await store.putDevice(device.account, device.device, tokenName(device), JSON.stringify(device))),
    dropDevice: async (account, device) => void (await store.dropDevice(account, device)),
    deviceOf: async (account, device) => {
      const row = store.device(account, device);
      return row === undefined ? undefined : (JSON.parse(row) as Device);
    },
    devicesOf: async (account) => store.devices(account).map((row) => JSON.parse(row) as Device),
    addTopics: async (account, spaceKey, topics) => void (await store.addTopics(account, spaceKey, topics)),
    dropTopics: async (account, spaceKey, topics) => void (await store.dropTopics(account, spaceKey, topics)),
    topicCount: async (account) => store.topicCount(account),
    topicsOf: async (account, after, limit) =>
      store.topicsOf(account, after?.spaceKey ?? "", after?.topic ?? "", limit),
    subscribers: async (spaceKey, topics) => [
      ...new Set(topics.flatMap((topic) => store.subscribers(spaceKey, topic))),
    ],
    accept: async (name, untilMs, deliveries) =>
      store.accept(
        name,
        untilMs,
        deliveries.map((delivery) => ({ id: delivery.id, dueMs: delivery.dueMs, row: JSON.stringify(delivery) })),
      ),
    takeDue: async (nowMs, limit, leaseMs) =>
      (await store.takeDue(nowMs, limit, nowMs + leaseMs)).map((row) => JSON.parse(row) as Delivery),
    nextDueMs: async () => store.nextDueMs(),
    defer: async (delivery, dueMs) =>
      void (await store.moveDelivery(
        delivery.id,
        dueMs,
        JSON.stringify({ ...delivery, dueMs, attempts: delivery.attempts + 1 } satisfies Delivery),
      )),
    finish: async (delivery) => void (await store.dropDelivery(delivery.id)),
    pending: async () => store.deliveryCount(),
    sweep: async (nowMs) => void (await store.forgetSpent(nowMs)),
    close: async () => store.close(),
  };
}

const tokenName = ({ platform, token }: Device): string => `${platform} ${token}`;
