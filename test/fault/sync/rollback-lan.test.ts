/** The same over the LAN alone: data roots that were put back to an older state, or copied and run twice. */
import { describe, expect } from "bun:test";
import { cpSync } from "node:fs";
import { createLan, describeWithMachines } from "../../support/network/machines.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { type JsonObject, until } from "../../support/server/client.ts";
import {
  type Device,
  forceSynced,
  joinOpen,
  mintInvite,
  setName,
  startDevice,
  untilSame,
  untilStatus,
} from "../../support/server/devices.ts";
import { createObject, createSpace, named } from "../../support/server/fixtures.ts";

const LONG_MS = 120_000;
const WAIT_MS = 40_000;

const debugOf = (device: Device, spaceId: string): Promise<JsonObject> =>
  device.server.client.get<JsonObject>(`/v1/spaces/${spaceId}/debug`);
const replacedAt = async (device: Device, spaceId: string): Promise<number> =>
  Number((await debugOf(device, spaceId))["writersReplaced"]);
const hasAll =
  (...names: string[]) =>
  (rows: string): boolean =>
    names.every((name) => rows.includes(`"${name}"`));
const peerIdOf = async ({ server }: Device): Promise<string> =>
  (await server.client.get<{ peerId: string }>("/v1/account")).peerId;

describe("a device that is not what it was, on a LAN alone", () => {
  rule(
    "[SYNC-7] put back to an older copy, having written on before it met anybody: nothing is lost, all converge, debug says so",
    async () => {
      using root = scratchDir("svc-rolled-back");
      using copy = scratchDir("svc-older-copy");
      using memberRoot = scratchDir("svc-member");
      const old = await startDevice({ lan: true, dataDir: root.path });
      const { client } = old.server;
      const { id } = await createSpace(client);
      const object = await createObject(client, id, named("before the copy"));
      const member = await startDevice({ lan: true, dataDir: memberRoot.path });
      await joinOpen(old, member, id);
      await untilSame([old, member], id, hasAll("before the copy"), WAIT_MS);
      await old.server.stop();
      cpSync(root.path, copy.path, { recursive: true });

      const later = await startDevice({ lan: true, dataDir: root.path });
      for (let i = 0; i < 4; i++) await createObject(later.server.client, id, named(`after the copy ${i}`));
      // Before it hears of the invite: what names the record of a branch that loses waits for ten minutes.
      await setName(member, id, object.id, "by the member");
      await mintInvite(later, id, { mode: "open", permission: "reader" });
      await untilSame([later, member], id, hasAll("by the member", "after the copy 3"), WAIT_MS);
      for (const device of [later, member]) await forceSynced(device, id, WAIT_MS);
      await later.server.stop();
      await member.server.stop();

      // It goes on with the writer of which the member has more, and with an older ACL log.
      await using back = await startDevice({ lan: true, dataDir: copy.path });
      for (let i = 0; i < 3; i++) await createObject(back.server.client, id, named(`on the copy ${i}`));
      await mintInvite(back, id, { mode: "open", permission: "writer" });
      await using again = await startDevice({ lan: true, dataDir: memberRoot.path });
      const all = hasAll("by the member", "after the copy 0", "after the copy 3", "on the copy 0", "on the copy 2");
      await untilSame([back, again], id, all, WAIT_MS);
      expect(await replacedAt(back, id)).toBe(1);
      expect(back.server.stderr()).toContain("this device's writer was used elsewhere too");
      await createObject(back.server.client, id, named("after the return"));
      await createObject(again.server.client, id, named("the member goes on"));
      await untilSame([back, again], id, hasAll("after the return", "the member goes on"), WAIT_MS);
      for (const device of [back, again]) {
        await forceSynced(device, id, WAIT_MS);
        expect(await debugOf(device, id)).toMatchObject({ parked: 0, quarantined: [], unconfirmed: 0, alarms: [] });
      }
      expect(await replacedAt(back, id)).toBe(1);
      expect(await replacedAt(again, id)).toBe(0);
    },
    LONG_MS,
  );

  rule(
    "[SYNC-8] a data root that runs twice on one machine: they refuse each other and take turns with others; all converge",
    async () => {
      using root = scratchDir("svc-original");
      using copy = scratchDir("svc-copy");
      let id: string;
      let mnemonic: string;
      {
        await using device = await startDevice({ lan: true, dataDir: root.path });
        ({ mnemonic } = device);
        ({ id } = await createSpace(device.server.client));
        await createObject(device.server.client, id, named("before"));
        await device.server.stop();
      }
      cpSync(root.path, copy.path, { recursive: true });
      await using one = await startDevice({ lan: true, dataDir: root.path });
      await using two = await startDevice({ lan: true, dataDir: copy.path });
      expect(await peerIdOf(two)).toBe(await peerIdOf(one));
      const names = Array.from({ length: 20 }, (_, i) => `twin ${i}`);
      await Promise.all(names.map((name, i) => createObject((i % 2 ? one : two).server.client, id, named(name))));
      // They refuse each other, so that it takes somebody else to bring them together.
      await until(
        () => [one, two].some(({ server }) => server.stderr().includes("its data root is a copy of this one")),
        "them to meet",
        WAIT_MS,
      );
      await using other = await startDevice({ lan: true, mnemonic });
      await untilStatus(other, id, "active", WAIT_MS);
      await untilSame([one, two, other], id, hasAll("before", ...names), WAIT_MS);
      expect((await replacedAt(one, id)) + (await replacedAt(two, id))).toBeGreaterThan(0);
      for (const [index, device] of [one, two].entries())
        await createObject(device.server.client, id, named(`apart ${index}`));
      await untilSame([one, two, other], id, hasAll("apart 0", "apart 1"), WAIT_MS);
    },
    LONG_MS,
  );
});

describeWithMachines("a data root that was copied to another machine", () => {
  rule(
    "[SYNC-8] the copy is a device of its own and writes as a writer of its own: the two meet, and nothing forks",
    async () => {
      using root = scratchDir("svc-original");
      using copy = scratchDir("svc-copy");
      await using lan = createLan();
      const [here, there] = [await lan.machine(), await lan.machine()];
      let id: string;
      {
        await using device = await here.start({ lan: true, dataDir: root.path });
        ({ id } = await createSpace(device.server.client));
        await createObject(device.server.client, id, named("before"));
        await device.server.stop();
      }
      cpSync(root.path, copy.path, { recursive: true });
      there.cable(false);
      await using original = await here.start({ lan: true, dataDir: root.path });
      await using twin = await there.start({ lan: true, dataDir: copy.path });
      expect(await peerIdOf(twin)).not.toBe(await peerIdOf(original));
      for (const [name, device] of Object.entries({ original, twin }))
        for (let i = 0; i < 3; i++) await createObject(device.server.client, id, named(`${name} ${i}`));
      there.cable(true);
      await untilSame([original, twin], id, hasAll("before", "original 0", "original 2", "twin 0", "twin 2"), WAIT_MS);
      for (const device of [original, twin]) await forceSynced(device, id, WAIT_MS);
      // A writer belongs to a device key: neither ever wrote under the other's name.
      expect([await replacedAt(original, id), await replacedAt(twin, id)]).toEqual([0, 0]);
      await createObject(twin.server.client, id, named("all in one"));
      await untilSame([original, twin], id, hasAll("all in one"), WAIT_MS);
    },
    LONG_MS,
  );
});
