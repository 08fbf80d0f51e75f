/** Files and the network: backed up, proved, fetched, and backed up again when the network loses them. */
import { afterAll, afterEach, beforeAll, expect } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { filesBelow } from "../../support/files-below.ts";
import { describeWithNats, type NatsServer, startNats } from "../../support/network/nats.ts";
import { filesInStore } from "../../support/network/nats-files.ts";
import { rule } from "../../support/rule.ts";
import { until } from "../../support/server/client.ts";
import {
  type Device,
  forceSynced,
  joinOpen,
  mintInvite,
  startDevice,
  untilStatus,
} from "../../support/server/devices.ts";
import { attach, bytesOf, content, type FileInfo, filesPath } from "../../support/server/files.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";

const MB = 1 << 20;

interface Status {
  state: string;
  cached: boolean;
  attempts?: number;
  lastErr?: string;
}
const statusOf = (device: Device, spaceId: string, fileId: string): Promise<Status> =>
  device.server.client.get<Status>(`${filesPath(spaceId)}/${fileId}/status`);
const untilState = async (device: Device, spaceId: string, fileId: string, state: string, timeoutMs = 40_000) => {
  let last: Status | undefined;
  await until(
    async () => {
      last = await statusOf(device, spaceId, fileId);
      return last.state === state;
    },
    `the file to be ${state}`,
    timeoutMs,
  ).catch((error: unknown) => {
    throw new Error(`${error}: ${JSON.stringify(last)}\n${device.server.stderr().split("\n").slice(-15).join("\n")}`);
  });
};
const read = (device: Device, spaceId: string, fileId: string, headers: Record<string, string> = {}) =>
  content(device.server.client, spaceId, fileId, { headers });
const cacheSize = async (device: Device): Promise<number> =>
  (await device.server.client.get<{ size: number }>("/v1/files/cache")).size;
/** Chunks of 512 KiB, and one page over them. */
const messagesFor = (size: number): number => Math.ceil(size / (512 << 10)) + 1;

describeWithNats("files and the network", () => {
  let nats: NatsServer;
  const opened: AsyncDisposable[] = [];
  const device = async (options: Parameters<typeof startDevice>[0] = {}): Promise<Device> => {
    const made = await startDevice({ network: nats.url, ...options });
    opened.push(made);
    return made;
  };
  const withFile = async (owner: Device, bytes: Uint8Array) => {
    const { client } = owner.server;
    const space = await createSpace(client);
    const objectId = (await createObject(client, space.id)).id;
    return { spaceId: space.id, objectId, file: await attach(client, space.id, objectId, bytes, { name: "a.bin" }) };
  };

  beforeAll(async () => {
    nats = await startNats();
  });
  afterEach(async () => {
    for (const one of opened.splice(0).reverse()) await one[Symbol.asyncDispose]();
  });
  afterAll(() => nats[Symbol.asyncDispose]());

  rule(
    "[FILE-8] a file becomes durable once the store has every chunk; another device fetches it whole or in ranges",
    async () => {
      const before = (await filesInStore(nats.url)).messages;
      const a = await device();
      const size = 3 * MB + 17;
      const bytes = bytesOf(size, 1);
      const { spaceId, objectId, file } = await withFile(a, bytes);
      const small = await attach(a.server.client, spaceId, objectId, bytesOf(99, 2));
      await untilState(a, spaceId, file.fileId, "durable");
      expect((await filesInStore(nats.url)).messages).toBe(before + messagesFor(size));
      await untilState(a, spaceId, small.fileId, "durable");
      expect(await a.server.client.get<unknown>(`${filesPath(spaceId)}/stats`)).toMatchObject({
        total: 2,
        durable: 2,
        oneCopy: 0,
      });
      const rows = await a.server.client.post<{ records: object[] }>(
        `/v1/spaces/${spaceId}/objects/${objectId}/files/query`,
        { filter: { durable: true } },
      );
      expect(rows.records).toHaveLength(2);

      const b = await device({ mnemonic: a.mnemonic });
      await untilStatus(b, spaceId, "active");
      await until(
        async () => (await b.server.client.request("GET", `${filesPath(spaceId)}/${file.fileId}`)).status === 200,
        "the row",
      );
      expect((await b.server.client.get<FileInfo>(`${filesPath(spaceId)}/${file.fileId}`)).cached).toBe(false);
      const part = await read(b, spaceId, file.fileId, { range: "bytes=1572860-1572870" });
      expect([part.status, part.bytes]).toEqual([206, bytes.slice(1572860, 1572871)]);
      expect(await cacheSize(b)).toBeLessThan(3 * MB);
      await untilState(b, spaceId, file.fileId, "durable");
      expect((await statusOf(b, spaceId, file.fileId)).cached).toBe(false);
      expect(Buffer.compare((await read(b, spaceId, file.fileId)).bytes, bytes)).toBe(0);
      await until(async () => (await statusOf(b, spaceId, file.fileId)).cached, "it to be cached");
      expect((await read(b, spaceId, small.fileId)).bytes).toEqual(bytesOf(99, 2));
      expect(await cacheSize(b)).toBe(size);
    },
  );

  rule(
    "[FILE-11] [FILE-4] what the network keeps can be offloaded and is fetched again; making room drops it, a pin keeps it",
    async () => {
      const a = await device();
      const bytes = bytesOf(2 * MB, 3);
      const { spaceId, objectId, file } = await withFile(a, bytes);
      const { client } = a.server;
      await untilState(a, spaceId, file.fileId, "durable");
      const path = `${filesPath(spaceId)}/${file.fileId}`;
      await client.post(`${path}/offload`, undefined, 204);
      expect([await cacheSize(a), (await client.get<FileInfo>(path)).cached]).toEqual([0, false]);
      expect(Buffer.compare((await read(a, spaceId, file.fileId)).bytes, bytes)).toBe(0);
      const pinned = await attach(client, spaceId, objectId, bytesOf(MB, 4));
      await client.post(`${filesPath(spaceId)}/${pinned.fileId}/pin`, undefined, 204);
      await untilState(a, spaceId, pinned.fileId, "durable");
      expect(await client.post<unknown>("/v1/files/cache/free", { bytes: 1e9 })).toEqual({ freed: 2 * MB });
      expect(await cacheSize(a)).toBe(MB);
      await client.post(`${path}/pin`, undefined, 204);
      await until(async () => (await client.get<FileInfo>(path)).cached, "the pinned file to be fetched");
      // A copy that the disk lost or damaged is none.
      const account = readdirSync(a.server.dataDir).find((name) => name.startsWith("A"))!;
      const place = join(a.server.dataDir, account, "files", spaceId, file.rootCid!);
      await Bun.write(place, bytesOf(2 * MB, 99));
      await client.post("/v1/files/cache/sweep", undefined, 204);
      await until(
        async () => Buffer.compare((await read(a, spaceId, file.fileId)).bytes, bytes) === 0,
        "the good bytes",
      );
    },
  );

  rule(
    "[FILE-8] a store that was wiped, or put back to an older state, gets every file again",
    async () => {
      const a = await device();
      const first = await withFile(a, bytesOf(MB + 5, 5));
      await untilState(a, first.spaceId, first.file.fileId, "durable");
      await forceSynced(a, first.spaceId);
      await nats.stop();
      nats.saveStore("older");
      await nats.start();
      const second = await attach(a.server.client, first.spaceId, first.objectId, bytesOf(MB + 6, 6));
      await untilState(a, first.spaceId, second.fileId, "durable");
      const full = (await filesInStore(nats.url)).messages;

      await nats.kill();
      nats.restoreStore("older");
      await nats.start();
      expect((await filesInStore(nats.url)).messages).toBe(full - messagesFor(MB + 6));
      await until(async () => (await filesInStore(nats.url)).messages === full, "the store to be whole again", 40_000);
      await untilState(a, first.spaceId, second.fileId, "durable");

      await nats.kill();
      nats.wipeStore();
      await nats.start();
      const wanted = messagesFor(MB + 5) + messagesFor(MB + 6);
      await until(
        async () => (await filesInStore(nats.url).catch(() => ({ messages: 0 }))).messages >= wanted,
        "every file to be there again",
        40_000,
      );
      for (const { fileId } of [first.file, second]) await untilState(a, first.spaceId, fileId, "durable");
      const b = await device({ mnemonic: a.mnemonic });
      await untilStatus(b, first.spaceId, "active");
      await until(
        async () => (await read(b, first.spaceId, second.fileId)).status === 200,
        "the second device to read it",
        30_000,
      );
    },
    120_000,
  );

  rule(
    "[FILE-8] an upload goes on where it stopped, over restarts of the network and of the server",
    async () => {
      const a = await device();
      const bytes = bytesOf(24 * MB, 7);
      const { spaceId, file } = await withFile(a, bytes);
      const before = (await filesInStore(nats.url)).messages;
      await until(async () => (await filesInStore(nats.url)).messages > before + 4, "some chunks");
      await nats.kill();
      const status = () => a.server.client.get<{ networkPeers: number }>(`/v1/spaces/${spaceId}/sync-status`);
      await until(async () => (await status()).networkPeers === 0, "the outage to be noticed", 30_000);
      expect((await statusOf(a, spaceId, file.fileId)).state).toBe("inflight");
      await nats.start();
      await until(async () => (await filesInStore(nats.url)).messages > before + 8, "more chunks", 30_000);
      await a.server.kill();
      const again = await device({ dataDir: a.server.dataDir });
      await untilState(again, spaceId, file.fileId, "durable", 60_000);
      const b = await device({ mnemonic: a.mnemonic });
      await untilStatus(b, spaceId, "active");
      await until(async () => (await read(b, spaceId, file.fileId)).status === 200, "it to be there", 30_000);
      expect(Buffer.compare((await read(b, spaceId, file.fileId)).bytes, bytes)).toBe(0);
    },
    120_000,
  );

  rule(
    "[FILE-4] the cache keeps to its limit as soon as the network has what makes way",
    async () => {
      const a = await device({ env: { SVC_SYNC_INTERVAL: "2s", SVC_FILES_CACHE_LIMIT: "2MiB" } });
      const first = await withFile(a, bytesOf(1.5 * MB, 21));
      const { client } = a.server;
      const second = await attach(client, first.spaceId, first.objectId, bytesOf(1.5 * MB, 22));
      for (const { fileId } of [first.file, second]) await untilState(a, first.spaceId, fileId, "durable");
      await until(async () => (await cacheSize(a)) <= 2 * MB, "the cache to be within its limit");
      for (const [{ fileId }, seed] of [
        [first.file, 21],
        [second, 22],
      ] as const) {
        const { status, bytes } = await read(a, first.spaceId, fileId);
        expect(status).toBe(200);
        expect(Buffer.compare(bytes, bytesOf(1.5 * MB, seed))).toBe(0);
      }
    },
    60_000,
  );

  rule(
    "[FILE-3] [FILE-7] the stream tells of a backup, and a guest reads what members attach",
    async () => {
      const a = await device();
      const { client } = a.server;
      const space = await createSpace(client);
      const objectId = (await createObject(client, space.id)).id;
      const stream = await client.stream("GET", `${filesPath(space.id)}/subscribe`);
      await stream.expect("ready");
      const file = await attach(client, space.id, objectId, bytesOf(MB, 23));
      for (let state = ""; state !== "durable"; ) {
        const frame = (await stream.expect("status", 30_000)) as unknown as Status & { fileId: string };
        expect(frame).toMatchObject({ fileId: file.fileId, objectId, cached: true });
        state = frame.state;
      }
      await stream.close();
      const path = `/v1/spaces/${space.id}/guest-key`;
      const { inviteToken } = await client.post<{ inviteToken: string }>(path, undefined, 201);
      const guest = await device();
      await guest.server.client.post("/v1/spaces/join", { inviteToken }, 202);
      await untilStatus(guest, space.id, "active");
      await until(
        async () => (await read(guest, space.id, file.fileId)).status === 200,
        "the guest to read it",
        30_000,
      );
      expect(Buffer.compare((await read(guest, space.id, file.fileId)).bytes, bytesOf(MB, 23))).toBe(0);
      await guest.server.client.fails(
        "DELETE",
        `${filesPath(space.id)}/${file.fileId}`,
        undefined,
        403,
        "space.read_only",
      );
    },
    90_000,
  );

  rule(
    "[FILE-7] the store holds neither names nor content",
    async () => {
      const a = await device();
      const { client } = a.server;
      const space = await createSpace(client);
      const objectId = (await createObject(client, space.id)).id;
      const canary = "canary-in-the-content-of-a-file ";
      const text = new TextEncoder().encode(canary.repeat(40_000));
      const file = await attach(client, space.id, objectId, text, { name: "canary-in-the-name", mime: "text/plain" });
      await untilState(a, space.id, file.fileId, "durable");
      await forceSynced(a, space.id);
      await nats.stop();
      const stored = filesBelow(nats.directory);
      await nats.start();
      expect(stored.reduce((sum, bytes) => sum + bytes.length, 0)).toBeGreaterThan(text.length);
      for (const secret of [canary, "canary-in-the-name", file.rootCid!, file.fileId, objectId, space.id])
        expect([secret, stored.some((bytes) => bytes.includes(secret))]).toEqual([secret, false]);
    },
    60_000,
  );

  rule(
    "[FILE-7] another member fetches it, a removed one opens nothing new",
    async () => {
      const owner = await device();
      const { spaceId, objectId, file } = await withFile(owner, bytesOf(MB, 8));
      const guest = await device();
      await joinOpen(owner, guest, spaceId, "reader");
      await until(
        async () => (await read(guest, spaceId, file.fileId)).status === 200,
        "the member to read it",
        30_000,
      );
      expect((await read(guest, spaceId, file.fileId)).bytes).toEqual(bytesOf(MB, 8));
      await owner.server.client.post(`/v1/spaces/${spaceId}/acl/remove`, { identities: [guest.accountId] }, 204);
      const next = await attach(owner.server.client, spaceId, objectId, bytesOf(MB, 8));
      expect(next.rootCid).not.toBe(file.rootCid!);
      await untilState(owner, spaceId, next.fileId, "durable");
      await until(async () => (await read(guest, spaceId, next.fileId)).status === 409, "the member to be out", 30_000);
      expect(await mintInvite(owner, spaceId)).toBeString();
    },
    90_000,
  );
});

describeWithNats("a network without room", () => {
  rule(
    "[FILE-8] [FILE-3] limited while the network refuses for want of room, durable once it has some",
    async () => {
      const withRoom = (bytes: number) => (config: string) =>
        config.replace(/max_file_store: \d+/, `max_file_store: ${bytes}`);
      const nats = await startNats({ config: "" });
      await using _ = nats;
      await nats.stop();
      nats.edit((config) => config.replace(/jetstream\s*\{/, "jetstream { max_file_store: 4000000\n"));
      await nats.start();
      const a = await startDevice({ network: nats.url });
      await using __ = a;
      const { client } = a.server;
      const space = await createSpace(client);
      const objectId = (await createObject(client, space.id)).id;
      const file = await attach(client, space.id, objectId, bytesOf(8 * MB, 9));
      await untilState(a, space.id, file.fileId, "limited");
      const said = await statusOf(a, space.id, file.fileId);
      expect(said.attempts).toBeGreaterThan(0);
      expect(said.lastErr).toContain("room");
      expect(await client.get<unknown>(`${filesPath(space.id)}/stats`)).toMatchObject({
        limited: 1,
        durable: 0,
        oneCopy: 1,
      });
      await client.fails("POST", `${filesPath(space.id)}/${file.fileId}/offload`, undefined, 409, "file.not_durable");
      await nats.stop();
      nats.edit(withRoom(400_000_000));
      await nats.start();
      await client.post(`${filesPath(space.id)}/${file.fileId}/retry`, undefined, 204);
      await untilState(a, space.id, file.fileId, "durable", 60_000);
      const { attempts, lastErr } = await statusOf(a, space.id, file.fileId);
      expect([attempts, lastErr]).toEqual([undefined, undefined]);
    },
    120_000,
  );
});
