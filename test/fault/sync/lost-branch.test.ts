/** Devices of one owner fork the ACL log while they are apart; what members wrote on the lost branch counts. */
import { expect } from "bun:test";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { type JsonObject, until } from "../../support/server/client.ts";
import {
  type Device,
  mintInvite,
  rowsOf,
  spacesOf,
  startDevice,
  statusOf,
  untilSame,
} from "../../support/server/devices.ts";
import { createObject, createSpace, named } from "../../support/server/fixtures.ts";

const LONG_MS = 240_000;
const WAIT_MS = 30_000;
const FORKS = 2;
const OPEN = { mode: "open", permission: "writer" };

describeWithNats("an ACL log that its owner's devices forked", () => {
  rule(
    "[ACL-11] what a member wrote on the branch that lost reaches everybody, though it comes later and over the network alone",
    async () => {
      await using nats = await startNats();
      using firstRoot = scratchDir("svc-first");
      using secondRoot = scratchDir("svc-second");
      using memberRoot = scratchDir("svc-member");
      const network = nats.url;
      const running = new Set<Device>();
      const start = async (dataDir: string, ways: { network?: string; lan?: boolean }, mnemonic?: string) => {
        const device = await startDevice({ dataDir, ...ways, ...(mnemonic === undefined ? {} : { mnemonic }) });
        running.add(device);
        return device;
      };
      const stop = async (device: Device) => {
        running.delete(device);
        await device.server.stop();
      };
      try {
        let first = await start(firstRoot.path, { network });
        const space = await createSpace(first.server.client);
        const base = `/v1/spaces/${space.id}`;
        const inviteToken = await mintInvite(first, space.id, OPEN);
        let member = await start(memberRoot.path, { network });
        await member.server.client.post("/v1/spaces/join", { inviteToken }, 202);
        await until(async () => (await spacesOf(member)).length === 1, "the member to be in", WAIT_MS);
        let second = await start(secondRoot.path, { network }, first.mnemonic);
        await createObject(first.server.client, space.id, named("begin"));
        await untilSame([first, second, member], space.id, (rows) => rows.includes("begin"), WAIT_MS);
        for (let fork = 0; fork < FORKS; fork++) {
          for (const device of [first, second, member]) await stop(device);

          first = await start(firstRoot.path, { lan: true });
          member = await start(memberRoot.path, { lan: true });
          await mintInvite(first, space.id, OPEN);
          await createObject(first.server.client, space.id, named(`apart ${fork}`));
          await untilSame([first, member], space.id, (rows) => rows.includes(`apart ${fork}`), WAIT_MS);
          await stop(first);
          await createObject(member.server.client, space.id, named(`on the branch ${fork}`));
          await stop(member);

          second = await start(secondRoot.path, { network });
          await mintInvite(second, space.id, OPEN);
          await createObject(second.server.client, space.id, named(`on the network ${fork}`));
          first = await start(firstRoot.path, { network });
          await untilSame([first, second], space.id, (rows) => rows.includes(`on the network ${fork}`), WAIT_MS);
          member = await start(memberRoot.path, { network });
          const all = [first, second, member];
          try {
            await untilSame(all, space.id, (rows) => rows.includes(`on the branch ${fork}`), WAIT_MS);
          } catch (error) {
            const debugs = await Promise.all(
              all.map((device) => device.server.client.get<JsonObject>(`${base}/debug`)),
            );
            throw new Error(`fork ${fork}: ${error}\n${debugs.map((debug) => JSON.stringify(debug)).join("\n")}`);
          }
          for (const device of all)
            await until(async () => (await statusOf(device, space.id)).state === "synced", "synced", WAIT_MS);
        }
        expect((JSON.parse(await rowsOf(first, space.id)) as unknown[]).length).toBe(1 + 3 * FORKS);
      } finally {
        for (const device of running) await device.server[Symbol.asyncDispose]();
      }
    },
    LONG_MS,
  );
});
