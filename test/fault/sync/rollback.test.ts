/** Devices that were put back to an older state, or copied and run twice: nothing is lost, all converge, debug says so. */

import { expect } from "bun:test";
import { cpSync } from "node:fs";
import { until } from "../../support/client.ts";
import { type Device, setName, startDevice, statusOf, untilSame } from "../../support/devices.ts";
import { createObject, createSpace } from "../../support/fixtures.ts";
import { describeWithNats, startNats } from "../../support/nats.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";

const LONG_MS = 120_000;

const untilSynced = (device: Device, spaceId: string): Promise<void> =>
  until(
    async () => {
      const reply = await device.server.client.request("POST", `/v1/spaces/${spaceId}/sync`);
      return reply.status === 204 && (await statusOf(device, spaceId)).state === "synced";
    },
    "synced",
    30_000,
  );
const replacedOf = async (device: Device, spaceId: string): Promise<number> =>
  (await device.server.client.get<{ writersReplaced: number }>(`/v1/spaces/${spaceId}/debug`)).writersReplaced;

describeWithNats("a device that is not what it was", () => {
  rule(
    "[rollback] put back to an older copy it fetches what it had written, writes on as another, and all converge",
    async () => {
      using root = scratchDir("svc-rolled-back");
      using copy = scratchDir("svc-older-copy");
      await using nats = await startNats();
      let spaceId: string;
      let mnemonic: string;
      {
        await using device = await startDevice({ network: nats.url, dataDir: root.path });
        ({ mnemonic } = device);
        spaceId = (await createSpace(device.server.client)).id;
        await createObject(device.server.client, spaceId, { initialProperties: { svc: { name: "before the copy" } } });
        await untilSynced(device, spaceId);
        await device.server.stop();
      }
      cpSync(root.path, copy.path, { recursive: true });
      {
        await using device = await startDevice({ network: nats.url, dataDir: root.path });
        for (let i = 0; i < 5; i++)
          await createObject(device.server.client, spaceId, { initialProperties: { svc: { name: `after ${i}` } } });
        await untilSynced(device, spaceId);
        await device.server.stop();
      }
      await using back = await startDevice({ network: nats.url, dataDir: copy.path });
      await using other = await startDevice({ network: nats.url, mnemonic });
      await untilSynced(back, spaceId);
      expect(await replacedOf(back, spaceId)).toBe(1);
      await createObject(back.server.client, spaceId, { initialProperties: { svc: { name: "after the return" } } });
      await untilSame([back, other], spaceId, (rows) => rows.includes("after the return") && rows.includes("after 4"));
      expect((await statusOf(other, spaceId)).total).toBe(7);
    },
    LONG_MS,
  );

  rule(
    "[fork] a data root that ran twice: both sides' writes under one writer are kept and folded everywhere",
    async () => {
      using root = scratchDir("svc-original");
      using copy = scratchDir("svc-copy");
      await using nats = await startNats();
      let spaceId: string;
      let objectId: string;
      let mnemonic: string;
      {
        await using device = await startDevice({ network: nats.url, dataDir: root.path });
        ({ mnemonic } = device);
        spaceId = (await createSpace(device.server.client)).id;
        objectId = (await createObject(device.server.client, spaceId)).id;
        await untilSynced(device, spaceId);
        await device.server.stop();
      }
      cpSync(root.path, copy.path, { recursive: true });
      {
        // Alone, so that it cannot know better: it goes on with the writer that the original goes on with, too.
        await using twin = await startDevice({ dataDir: copy.path });
        await setName(twin, spaceId, objectId, "from the twin");
        for (let i = 0; i < 3; i++)
          await createObject(twin.server.client, spaceId, { initialProperties: { svc: { name: `twin ${i}` } } });
        expect((await statusOf(twin, spaceId)).state).toBe("offline");
        await twin.server.stop();
      }
      {
        await using original = await startDevice({ network: nats.url, dataDir: root.path });
        for (let i = 0; i < 6; i++)
          await createObject(original.server.client, spaceId, {
            initialProperties: { svc: { name: `original ${i}` } },
          });
        await untilSynced(original, spaceId);
        await original.server.stop();
      }
      await using twin = await startDevice({ network: nats.url, dataDir: copy.path });
      await untilSynced(twin, spaceId);
      expect(await replacedOf(twin, spaceId)).toBe(1);
      await using other = await startDevice({ network: nats.url, mnemonic, lan: true });
      await untilSynced(other, spaceId);
      const holds = (rows: string) =>
        rows.includes("from the twin") && rows.includes("twin 2") && rows.includes("original 5");
      await untilSame([twin, other], spaceId, holds);
      expect((await statusOf(other, spaceId)).total).toBe(10);
      await twin.server.stop();

      // Over the LAN, and the other way: the original lacks one branch of a writer that it takes for its own.
      await nats.kill();
      await using original = await startDevice({ dataDir: root.path, lan: true });
      await untilSame([original, other], spaceId, holds);
      await until(async () => (await replacedOf(original, spaceId)) === 1, "another writer at the original", 20_000);
      await createObject(original.server.client, spaceId, { initialProperties: { svc: { name: "all in one" } } });
      await untilSame([original, other], spaceId, (rows) => rows.includes("all in one"));
    },
    LONG_MS,
  );
});
