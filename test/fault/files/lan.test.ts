/** Files on a LAN without a network: fetched from whoever has them, verified, resumed. */
import { afterEach, describe, expect } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { openToOthers } from "../../support/open-to-others.ts";
import { rule } from "../../support/rule.ts";
import { until } from "../../support/server/client.ts";
import { type Device, joinOpen, startDevice, untilStatus } from "../../support/server/devices.ts";
import { attach, bytesOf, content, type FileInfo, filesPath } from "../../support/server/files.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";

const MB = 1 << 20;
const opened: AsyncDisposable[] = [];
const device = async (options: Parameters<typeof startDevice>[0] = {}): Promise<Device> => {
  const made = await startDevice({ lan: true, ...options });
  opened.push(made);
  return made;
};
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

const path = (spaceId: string, fileId: string) => `${filesPath(spaceId)}/${fileId}`;
const infoOf = (at: Device, spaceId: string, fileId: string) => at.server.client.get<FileInfo>(path(spaceId, fileId));
const untilKnown = (at: Device, spaceId: string, fileId: string) =>
  until(
    async () => (await at.server.client.request("GET", path(spaceId, fileId))).status === 200,
    "the row to come",
    30_000,
  );
const untilRead = async (at: Device, spaceId: string, fileId: string, timeoutMs = 30_000): Promise<Uint8Array> => {
  let bytes = new Uint8Array(0);
  await until(
    async () => {
      const got = await content(at.server.client, spaceId, fileId);
      bytes = got.bytes as Uint8Array<ArrayBuffer>;
      return got.status === 200;
    },
    "the bytes to come",
    timeoutMs,
  );
  return bytes;
};
const untilCached = (at: Device, spaceId: string, fileId: string) =>
  until(async () => (await infoOf(at, spaceId, fileId)).cached, "it to be whole here", 30_000);
const placeOf = (at: Device, spaceId: string, rootCid: string): string => {
  const account = readdirSync(at.server.dataDir).find((name) => name.startsWith("A"))!;
  return join(at.server.dataDir, account, "files", spaceId, rootCid);
};

describe("files on a LAN", () => {
  rule(
    "[FILE-7] [STORE-7] fetched from two peers, of whom one is killed in the middle and one lies; whole, it is open to nobody else",
    async () => {
      const a = await device();
      const { client } = a.server;
      const space = await createSpace(client);
      const objectId = (await createObject(client, space.id)).id;
      const bytes = bytesOf(48 * MB + 11, 1);
      const file = await attach(client, space.id, objectId, bytes, { name: "film" });
      expect(await client.get<unknown>(`${filesPath(space.id)}/stats`)).toMatchObject({ oneCopy: 1 });

      const b = await device();
      await joinOpen(a, b, space.id, "reader");
      await untilKnown(b, space.id, file.fileId);
      expect(Buffer.compare(await untilRead(b, space.id, file.fileId), bytes)).toBe(0);
      await untilCached(b, space.id, file.fileId);
      for (const at of [a, b]) expect(openToOthers(at.server.dataDir)).toEqual([]);
      for (const at of [a, b])
        await until(
          async () => (await at.server.client.get<{ oneCopy: number }>(`${filesPath(space.id)}/stats`)).oneCopy === 0,
          "both to know of two copies",
        );

      // The second holder's copy is not what it says any more: whatever of it is sent is thrown away.
      const damaged = bytesOf(48 * MB + 11, 1);
      damaged.fill(7, 20 * MB, 30 * MB);
      await Bun.write(placeOf(b, space.id, file.rootCid!), damaged);
      const c = await device({ mnemonic: a.mnemonic });
      await untilStatus(c, space.id, "active");
      await untilKnown(c, space.id, file.fileId);
      expect(Buffer.compare(await untilRead(c, space.id, file.fileId), bytes)).toBe(0);

      // One of two good ones is killed while a fourth fetches.
      await Bun.write(placeOf(b, space.id, file.rootCid!), bytes);
      await untilCached(c, space.id, file.fileId);
      const d = await device();
      await joinOpen(a, d, space.id, "writer");
      await untilKnown(d, space.id, file.fileId);
      const response = await fetch(`${d.server.base}${path(space.id, file.fileId)}/content`);
      expect(response.status).toBe(200);
      const reader = response.body!.getReader();
      const parts: Uint8Array[] = [];
      for (let killed = false; ; ) {
        const { done, value } = await reader.read();
        if (done) break;
        parts.push(value);
        if (killed) continue;
        killed = true;
        await a.server.kill();
      }
      expect(Buffer.compare(Buffer.concat(parts), bytes)).toBe(0);
    },
    150_000,
  );

  rule(
    "[FILE-11] 409 within seconds while nobody has it, and fetched when somebody turns up; parts that came are kept",
    async () => {
      const a = await device();
      const { client } = a.server;
      const space = await createSpace(client);
      const objectId = (await createObject(client, space.id)).id;
      const bytes = bytesOf(6 * MB, 2);
      const file = await attach(client, space.id, objectId, bytes);
      const b = await device({ mnemonic: a.mnemonic });
      await untilStatus(b, space.id, "active");
      await untilKnown(b, space.id, file.fileId);
      const part = await content(b.server.client, space.id, file.fileId, { headers: { range: "bytes=0-9" } });
      expect([part.status, part.bytes]).toEqual([206, bytes.slice(0, 10)]);
      await a.server.kill();
      // What came stays readable without anybody, also after a restart.
      await b.server.stop();
      const again = await device({ dataDir: b.server.dataDir, mnemonic: a.mnemonic });
      const kept = await content(again.server.client, space.id, file.fileId, { headers: { range: "bytes=0-9" } });
      expect([kept.status, kept.bytes]).toEqual([206, bytes.slice(0, 10)]);
      const startedMs = performance.now();
      const missing = await content(again.server.client, space.id, file.fileId, {
        headers: { range: "bytes=5000000-" },
      });
      expect(missing.status).toBe(409);
      expect(performance.now() - startedMs).toBeLessThan(8_000);
      await device({ dataDir: a.server.dataDir });
      await untilCached(again, space.id, file.fileId);
      expect(Buffer.compare(await untilRead(again, space.id, file.fileId), bytes)).toBe(0);
    },
    120_000,
  );

  rule(
    "[FILE-4] the only copy of what another device deleted stays on the disk for a day",
    async () => {
      const a = await device();
      const { client } = a.server;
      const space = await createSpace(client);
      const objectId = (await createObject(client, space.id)).id;
      const file = await attach(client, space.id, objectId, bytesOf(MB, 4));
      const b = await device({ mnemonic: a.mnemonic });
      await untilStatus(b, space.id, "active");
      await untilKnown(b, space.id, file.fileId);
      await b.server.client.del(path(space.id, file.fileId));
      const isGone = async () => (await client.request("GET", path(space.id, file.fileId))).status === 404;
      await until(isGone, "the row to go", 30_000);
      await client.post("/v1/files/cache/sweep", undefined, 204);
      expect(Buffer.from(await Bun.file(placeOf(a, space.id, file.rootCid!)).bytes()).equals(bytesOf(MB, 4))).toBe(
        true,
      );
    },
    60_000,
  );

  rule(
    "[FILE-11] a device that keeps all fetches without being asked",
    async () => {
      const a = await device();
      const { client } = a.server;
      const space = await createSpace(client);
      const objectId = (await createObject(client, space.id)).id;
      const keeper = await device({ mnemonic: a.mnemonic, env: { SVC_SYNC_INTERVAL: "2s", SVC_FILES_KEEP: "all" } });
      await untilStatus(keeper, space.id, "active");
      const file = await attach(client, space.id, objectId, bytesOf(3 * MB, 3));
      await untilKnown(keeper, space.id, file.fileId);
      await untilCached(keeper, space.id, file.fileId);
    },
    60_000,
  );
});
