/** Devices that come back after thousands of changes, several epochs of keys and members that went and came; and new ones. */
import { describe, expect } from "bun:test";
import { randomBytes } from "node:crypto";
import type { JsonObject } from "../../support/hostile/wire-types.ts";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { startTcpProxy } from "../../support/network/tcp-proxy.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { type SpaceInfo, until } from "../../support/server/client.ts";
import {
  type Device,
  type DeviceOptions,
  rowsOf,
  startDevice,
  statusOf,
  untilSynced,
} from "../../support/server/devices.ts";
import { type Collection, createCollection, createSpace, setFields } from "../../support/server/fixtures.ts";

const LONG_MS = 180_000;
const WAIT_MS = 60_000;
const AT_ONCE = 50;

/** One change a record. */
async function writeMany(collection: Collection, stem: string, count: number, bytes: number): Promise<void> {
  for (let from = 0; from < count; from += AT_ONCE) {
    const ids = Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, index) => `${stem}${from + index}`);
    await Promise.all(
      ids.map((id) => collection.modify([setFields(id, { s: randomBytes(bytes).toString("base64") })])),
    );
  }
}

const permissionsOf = async (device: Device, spaceId: string): Promise<string[]> =>
  (await device.server.client.get<{ members: JsonObject[] }>(`/v1/spaces/${spaceId}/members`)).members
    .map(({ identity, permission, status }) => `${identity} ${permission} ${status}`)
    .sort();

/** Adds an account and lets it accept; both have to be online. */
async function addAndAccept(owner: Device, other: Device, spaceId: string): Promise<void> {
  const accounts = [{ identity: other.accountId, permission: "writer" }];
  await owner.server.client.post(`/v1/spaces/${spaceId}/acl/add`, { accounts }, 204);
  const path = "/v1/spaces?status=invite_pending";
  await until(async () => (await other.server.client.get<SpaceInfo[]>(path)).length === 1, "to be added", WAIT_MS);
  const accepted = await other.server.client.request("POST", `/v1/spaces/${spaceId}/invite/accept`);
  expect([200, 202]).toContain(accepted.status);
}

/** What happens while the others are away: changes under new keys, and a member that goes and comes. */
async function aMonth(owner: Device, member: string, spaceId: string, collection: Collection, changes: number) {
  const { client } = owner.server;
  const base = `/v1/spaces/${spaceId}`;
  const part = Math.ceil(changes / 4);
  await writeMany(collection, "a", part, 1200);
  await client.post(`${base}/acl/remove`, { identities: [member] }, 204);
  await writeMany(collection, "b", part, 1200);
  await client.post(`${base}/invites`, { mode: "open", permission: "reader" }, 201);
  await client.post(`${base}/invites`, { mode: "open", permission: "reader" }, 201);
  await writeMany(collection, "c", part, 1200);
  await client.post(`${base}/acl/add`, { accounts: [{ identity: member, permission: "writer" }] }, 204);
  await client.post(`${base}/guest-key`, {}, 201);
  await client.del(`${base}/guest-key`);
  await writeMany(collection, "d", part, 1200);
}

/** A device as it is in the very moment in which it says that the boot pass is over. */
async function bootedWith(options: DeviceOptions, collection: Collection, count: number): Promise<Device> {
  const device = await startDevice(options);
  const reply = await device.server.client.request("POST", `${collection.path}/query`, {
    body: { ...collection.target, limit: 1, includeTotal: true },
  });
  expect(reply.json).toMatchObject({ total: count });
  return device;
}

describeWithNats("a long absence, over a network", () => {
  rule(
    "[SYNC-11] is part of the boot pass: old devices, a member removed and added again, and new devices have it all",
    async () => {
      await using nats = await startNats();
      using ownerRoot = scratchDir("svc-owner");
      using secondRoot = scratchDir("svc-second");
      using memberRoot = scratchDir("svc-member");
      const network = nats.url;
      await using owner = await startDevice({ network, dataDir: ownerRoot.path });
      const space = await createSpace(owner.server.client);
      const collection = await createCollection(owner.server.client, space.id);
      await writeMany(collection, "before", 10, 20);
      let member = await startDevice({ network, dataDir: memberRoot.path });
      await addAndAccept(owner, member, space.id);
      await untilSynced(member, space.id);
      await member.server.stop();
      const second = await startDevice({ network, dataDir: secondRoot.path, mnemonic: owner.mnemonic });
      await untilSynced(second, space.id);
      await second.server.stop();

      await aMonth(owner, member.accountId, space.id, collection, 2000);
      await owner.server.client.post(`/v1/spaces/${space.id}/sync`, {}, 204);
      await untilSynced(owner, space.id);

      await using back = await bootedWith({ network, dataDir: secondRoot.path }, collection, 2010);
      expect((await statusOf(back, space.id)).state).toBe("synced");
      member = await startDevice({ network, dataDir: memberRoot.path });
      await using _member = member;
      await untilSynced(member, space.id);
      const own: Collection = { ...collection, ...(await onDevice(member, collection)) };
      await writeMany(own, "after", 5, 20);
      for (const device of [owner, back]) {
        await until(
          async () => (await rowsOf(device, space.id)) === (await rowsOf(member, space.id)),
          "the same rows",
          WAIT_MS,
        );
        expect(await permissionsOf(device, space.id)).toEqual(await permissionsOf(member, space.id));
        await until(async () => (await countOn(device, collection)) === 2015, "what the member wrote", WAIT_MS);
      }
      expect(await countOn(member, collection)).toBe(2015);
    },
    LONG_MS,
  );

  rule(
    "[SYNC-11] a member removed before and added again after hundreds of records never was gone when it comes back",
    async () => {
      await using nats = await startNats();
      using memberRoot = scratchDir("svc-member");
      const network = nats.url;
      await using owner = await startDevice({ network });
      const space = await createSpace(owner.server.client);
      const collection = await createCollection(owner.server.client, space.id);
      let member = await startDevice({ network, dataDir: memberRoot.path });
      await addAndAccept(owner, member, space.id);
      await untilSynced(member, space.id);
      await member.server.stop();

      const base = `/v1/spaces/${space.id}`;
      const { client } = owner.server;
      await client.post(`${base}/acl/remove`, { identities: [member.accountId] }, 204);
      // One in twenty replaces an open invite, which begins an epoch with a place of its own on the network.
      for (let n = 0; n < 520; n++)
        await client.post(`${base}/invites`, n % 20 === 0 ? { mode: "open", permission: "reader" } : {}, 201);
      await client.post(`${base}/acl/add`, { accounts: [{ identity: member.accountId, permission: "writer" }] }, 204);
      await collection.modify([setFields("after", { s: "for those who are members" })]);
      await client.post(`${base}/sync`, {}, 204);

      member = await startDevice({ network, dataDir: memberRoot.path });
      await using _member = member;
      await untilSynced(member, space.id);
      expect(await permissionsOf(member, space.id)).toEqual(await permissionsOf(owner, space.id));
      await until(async () => (await countOn(member, collection)) === 1, "what was written for members", WAIT_MS);
    },
    LONG_MS,
  );

  rule(
    "[SYNC-11] the phrase on an empty machine brings everything back, and shows how far it is as a process",
    async () => {
      await using nats = await startNats();
      await using owner = await startDevice({ network: nats.url });
      const space = await createSpace(owner.server.client);
      const collection = await createCollection(owner.server.client, space.id);
      await writeMany(collection, "r", 800, 6000);
      await owner.server.client.post(`/v1/spaces/${space.id}/sync`, {}, 204);
      await untilSynced(owner, space.id);
      await owner.server.stop();

      await using proxy = await startTcpProxy(nats.port);
      proxy.delay(150);
      // Once the space is known, with its content still to come, the line is so slow that it takes longer than a process needs to
      // be shown; once that is seen, it may be over.
      let processes: JsonObject[] = [];
      const starting = { mnemonic: owner.mnemonic, network: `nats://127.0.0.1:${proxy.port}` };
      const seen: JsonObject[] = [];
      await using device = await startDevice({
        ...starting,
        whileBooting: async (client) => {
          ({ processes } = await client.get<{ processes: JsonObject[] }>("/v1/processes"));
          seen.push(...processes.filter(({ kind }) => kind === "sync.restore"));
          if (seen.length > 0) proxy.delay(0);
          else if ((await client.get<SpaceInfo[]>("/v1/spaces")).length > 0) proxy.delay(500);
        },
      });
      expect(await countOn(device, collection)).toBe(800);
      expect(seen.length).toBeGreaterThan(0);
      expect(seen[0]).toMatchObject({ scope: "device", state: "running", self: true, target: device.accountId });
      const ended = async () => {
        ({ processes } = await device.server.client.get<{ processes: JsonObject[] }>("/v1/processes"));
        return processes.some(({ kind, state }) => kind === "sync.restore" && state === "done");
      };
      await until(ended, "the end of the process", WAIT_MS);
      const row = processes.find(({ kind }) => kind === "sync.restore")!;
      expect(row["done"]).toBeGreaterThanOrEqual(800);
      expect(row["total"]).toBe(row["done"]);
    },
    LONG_MS,
  );
});

describe("a long absence, over the LAN", () => {
  rule(
    "[SYNC-11] is part of the boot pass where the only other devices are on the LAN",
    async () => {
      using secondRoot = scratchDir("svc-second");
      await using owner = await startDevice({ lan: true });
      const space = await createSpace(owner.server.client);
      const collection = await createCollection(owner.server.client, space.id);
      await writeMany(collection, "before", 10, 20);
      const second = await startDevice({ lan: true, dataDir: secondRoot.path, mnemonic: owner.mnemonic });
      await until(async () => (await countOn(second, collection)) === 10, "the first records", WAIT_MS);
      await second.server.stop();
      await writeMany(collection, "a", 1200, 300);
      await using back = await bootedWith({ lan: true, dataDir: secondRoot.path }, collection, 1210);
      await untilSynced(back, space.id);
      await using fresh = await bootedWith({ lan: true, mnemonic: owner.mnemonic }, collection, 1210);
      await untilSynced(fresh, space.id);
    },
    LONG_MS,
  );
});

async function countOn(device: Device, { path, target }: Collection): Promise<number | undefined> {
  const reply = await device.server.client.request("POST", `${path}/query`, {
    body: { ...target, limit: 1, includeTotal: true },
  });
  return (reply.json as { total?: number } | undefined)?.total;
}

async function onDevice(device: Device, { path, target }: Collection): Promise<Pick<Collection, "modify">> {
  return { modify: (records) => device.server.client.post(`${path}/modify`, { ...target, records }) };
}
