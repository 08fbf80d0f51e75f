/** Devices that were put back to an older state, or copied and run twice: nothing is lost, all converge, debug says so. */

import { expect } from "bun:test";
import { cpSync } from "node:fs";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { until } from "../../support/server/client.ts";
import { type Device, forceSynced, setName, startDevice, statusOf, untilSame } from "../../support/server/devices.ts";
import { createObject, createSpace, named } from "../../support/server/fixtures.ts";

const LONG_MS = 120_000;

const replacedOf = async (device: Device, spaceId: string): Promise<number> =>
  (await device.server.client.get<{ writersReplaced: number }>(`/v1/spaces/${spaceId}/debug`)).writersReplaced;

interface Copied extends Disposable {
  readonly root: string;
  readonly copy: string;
  readonly spaceId: string;
  readonly objectId: string;
  readonly mnemonic: string;
}

/** A data root and its copy, made when the network had all that its device wrote: an object of this name in a space. */
async function copiedRoot(network: string, name: string): Promise<Copied> {
  using stack = new DisposableStack();
  const root = stack.use(scratchDir("svc-original")).path;
  const copy = stack.use(scratchDir("svc-copy")).path;
  await using device = await startDevice({ network, dataDir: root });
  const { mnemonic, server } = device;
  const spaceId = (await createSpace(server.client)).id;
  const objectId = (await createObject(server.client, spaceId, named(name))).id;
  await forceSynced(device, spaceId);
  await server.stop();
  cpSync(root, copy, { recursive: true });
  const roots = stack.move();
  return { root, copy, spaceId, objectId, mnemonic, [Symbol.dispose]: () => roots.dispose() };
}

describeWithNats("a device that is not what it was", () => {
  rule(
    "[SYNC-7] put back to an older copy it fetches what it had written, writes on as another, and all converge",
    async () => {
      await using nats = await startNats();
      using copied = await copiedRoot(nats.url, "before the copy");
      const { root, copy, spaceId, mnemonic } = copied;
      {
        await using device = await startDevice({ network: nats.url, dataDir: root });
        for (let i = 0; i < 5; i++) await createObject(device.server.client, spaceId, named(`after ${i}`));
        await forceSynced(device, spaceId);
        await device.server.stop();
      }
      await using back = await startDevice({ network: nats.url, dataDir: copy });
      await using other = await startDevice({ network: nats.url, mnemonic });
      await forceSynced(back, spaceId);
      expect(await replacedOf(back, spaceId)).toBe(1);
      await createObject(back.server.client, spaceId, named("after the return"));
      await untilSame([back, other], spaceId, (rows) => rows.includes("after the return") && rows.includes("after 4"));
      expect((await statusOf(other, spaceId)).total).toBe(7);
    },
    LONG_MS,
  );

  rule(
    "[SYNC-8] a data root that ran twice: both sides' writes under one writer are kept and folded everywhere",
    async () => {
      await using nats = await startNats();
      using copied = await copiedRoot(nats.url, "before the copy");
      const { root, copy, spaceId, objectId, mnemonic } = copied;
      {
        // Alone, so that it cannot know better: it goes on with the writer that the original goes on with, too.
        await using twin = await startDevice({ dataDir: copy });
        await setName(twin, spaceId, objectId, "from the twin");
        for (let i = 0; i < 3; i++) await createObject(twin.server.client, spaceId, named(`twin ${i}`));
        expect((await statusOf(twin, spaceId)).state).toBe("offline");
        await twin.server.stop();
      }
      {
        await using original = await startDevice({ network: nats.url, dataDir: root });
        for (let i = 0; i < 6; i++) await createObject(original.server.client, spaceId, named(`original ${i}`));
        await forceSynced(original, spaceId);
        await original.server.stop();
      }
      await using twin = await startDevice({ network: nats.url, dataDir: copy });
      await forceSynced(twin, spaceId);
      expect(await replacedOf(twin, spaceId)).toBe(1);
      await using other = await startDevice({ network: nats.url, mnemonic, lan: true });
      await forceSynced(other, spaceId);
      const holds = (rows: string) =>
        rows.includes("from the twin") && rows.includes("twin 2") && rows.includes("original 5");
      await untilSame([twin, other], spaceId, holds);
      expect((await statusOf(other, spaceId)).total).toBe(10);
      await twin.server.stop();

      // Over the LAN, and the other way: the original lacks one branch of a writer that it takes for its own.
      await nats.kill();
      await using original = await startDevice({ dataDir: root, lan: true });
      await untilSame([original, other], spaceId, holds);
      await until(async () => (await replacedOf(original, spaceId)) === 1, "another writer at the original", 20_000);
      await createObject(original.server.client, spaceId, named("all in one"));
      await untilSame([original, other], spaceId, (rows) => rows.includes("all in one"));
    },
    LONG_MS,
  );
});

interface Debug {
  alarms: { kind: string; record: string }[];
  networkResets: number;
}
const debugOf = (device: Device, spaceId: string): Promise<Debug> =>
  device.server.client.get<Debug>(`/v1/spaces/${spaceId}/debug`);

describeWithNats("a network that is not what it was", () => {
  rule(
    "[SYNC-7] put back to an older copy of its store it gets everything back, rights too, and debug says what happened",
    async () => {
      using awayRoot = scratchDir("svc-away");
      await using nats = await startNats();
      const network = nats.url;
      await using first = await startDevice({ network });
      const { mnemonic } = first;
      const { client } = first.server;
      await using member = await startDevice({ network });
      const spaceId = (await createSpace(client)).id;
      const base = `/v1/spaces/${spaceId}`;
      await createObject(client, spaceId, named("before the copy"));
      const away = await startDevice({ network, mnemonic, dataDir: awayRoot.path });
      await untilSame([first, away], spaceId, (rows) => rows.includes("before the copy"));
      await forceSynced(first, spaceId);
      await away.server.stop();
      await nats.stop();
      nats.saveStore("older");
      await nats.start();

      const accounts = [{ identity: member.accountId, permission: "writer" }];
      await until(
        async () => (await client.request("POST", `${base}/acl/add`, { body: { accounts } })).status === 204,
        "the network",
        30_000,
      );
      const pending = () => member.server.client.get<unknown[]>("/v1/spaces?status=invite_pending");
      await until(async () => (await pending()).length === 1, "the member to be added", 30_000);
      await member.server.client.request("POST", `${base}/invite/accept`);
      for (let i = 0; i < 20; i++) await createObject(client, spaceId, named(`after the copy ${i}`));
      await untilSame([first, member], spaceId, (rows) => rows.includes("after the copy 19"), 30_000);
      const said = await createObject(member.server.client, spaceId, named("by the member"));
      await untilSame([first, member], spaceId, (rows) => rows.includes("by the member"), 30_000);
      await forceSynced(first, spaceId);
      expect(await debugOf(first, spaceId)).toMatchObject({ networkResets: 0, alarms: [] });

      await nats.stop();
      nats.restoreStore("older");
      await nats.start();
      // The older store grows again, beyond what was read of the other.
      for (let i = 0; i < 30; i++) await createObject(client, spaceId, named(`on the older store ${i}`));
      await setName(member, spaceId, said.id, "by the member, again");
      const holds = (rows: string) =>
        ["before the copy", "after the copy 19", "on the older store 29", "by the member, again"].every((text) =>
          rows.includes(text),
        );
      await untilSame([first, member], spaceId, holds, 40_000);
      for (const device of [first, member]) {
        await forceSynced(device, spaceId);
        const debug = await debugOf(device, spaceId);
        expect(debug.networkResets).toBeGreaterThan(0);
        expect(debug.alarms).toMatchObject([{ kind: "rolled_back" }]);
      }
      for (const device of [first, member]) await device.server.stop();

      // From the network alone: who has read only what the copy had, and who has read nothing.
      await using back = await startDevice({ network, dataDir: awayRoot.path });
      await using fresh = await startDevice({ network, mnemonic });
      await untilSame([back, fresh], spaceId, holds, 40_000);
      for (const device of [back, fresh]) {
        await forceSynced(device, spaceId);
        expect((await statusOf(device, spaceId)).total).toBe(52);
        const { members } = await device.server.client.get<{ members: { identity: string }[] }>(`${base}/members`);
        expect(members.map(({ identity }) => identity).sort()).toEqual([first.accountId, member.accountId].sort());
      }
    },
    LONG_MS,
  );
});

describeWithNats("a data root that runs twice at once", () => {
  rule(
    "[SYNC-8] both write under one name at the same time, and end with the same, as writers of their own",
    async () => {
      await using nats = await startNats();
      using copied = await copiedRoot(nats.url, "before");
      const { root, copy, spaceId, mnemonic } = copied;
      await using one = await startDevice({ network: nats.url, dataDir: root, lan: true });
      await using two = await startDevice({ network: nats.url, dataDir: copy, lan: true });
      await Promise.all(
        Array.from({ length: 40 }, (_, i) => {
          const { client } = (i % 2 ? one : two).server;
          return createObject(client, spaceId, named(`twin ${i}`));
        }),
      );
      await using other = await startDevice({ network: nats.url, mnemonic });
      const holds = (rows: string) =>
        Array.from({ length: 40 }, (_, i) => `"twin ${i}"`).every((text) => rows.includes(text));
      await untilSame([one, two, other], spaceId, holds, 40_000);
      for (const device of [one, two, other]) await forceSynced(device, spaceId);
      expect((await replacedOf(one, spaceId)) + (await replacedOf(two, spaceId))).toBeGreaterThan(0);
      // From now on they are told apart.
      for (const [index, device] of [one, two].entries())
        await createObject(device.server.client, spaceId, named(`apart ${index}`));
      await untilSame(
        [one, two, other],
        spaceId,
        (rows) => rows.includes("apart 0") && rows.includes("apart 1"),
        40_000,
      );
    },
    LONG_MS,
  );
});
