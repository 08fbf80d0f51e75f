/** What many rotations cost, and what a network that lost a space of many epochs gets again. */
import { expect } from "bun:test";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { forceSynced, joinOpen, setName, startDevice, untilSame } from "../../support/server/devices.ts";
import { createObject, createSpace, named } from "../../support/server/fixtures.ts";
import { connectWith } from "../../support/server/stream-reader.ts";
import { knownAccount } from "../../support/worlds/known-account.ts";
import { rotate, untilRead } from "../../support/worlds/rotations.ts";

const LONG_MS = 180_000;
const WAIT_MS = 60_000;

describeWithNats("a space of many epochs", () => {
  rule(
    "[ACL-7] a space in its hundredth epoch asks the network no more than twice what one in its first does",
    async () => {
      await using nats = await startNats();
      await using owner = await startDevice({ network: nats.url, env: { SVC_SYNC_INTERVAL: "1h" } });
      const [young, old] = [await createSpace(owner.server.client), await createSpace(owner.server.client)];
      await rotate(owner, old.id, 99);
      for (const { id } of [young, old]) await forceSynced(owner, id);
      const nc = await connectWith(nats.url, (await knownAccount()).networkKey);
      let asked = 0;
      nc.subscribe("$JS.API.>", { callback: () => void asked++ });
      await nc.flush();
      const costOf = async (spaceId: string): Promise<number> => {
        const before = asked;
        for (let count = 0; count < 20; count++) {
          await createObject(owner.server.client, spaceId);
          await owner.server.client.post(`/v1/spaces/${spaceId}/sync`, {}, 204);
        }
        await nc.flush();
        return asked - before;
      };
      const costs = { young: await costOf(young.id), old: await costOf(old.id) };
      await nc.close();
      expect(costs.young).toBeGreaterThan(20);
      expect(costs.old).toBeLessThanOrEqual(2 * costs.young);
      console.log(`requests of twenty rounds: first epoch ${costs.young}, hundredth ${costs.old}`);
    },
    LONG_MS,
  );

  rule(
    "[ACL-7] [SYNC-7] a network that lost everything is filled again, so that also who was away since an older epoch finds the rest",
    async () => {
      await using nats = await startNats();
      using awayRoot = scratchDir("svc-away");
      const network = nats.url;
      await using owner = await startDevice({ network });
      const space = await createSpace(owner.server.client, "Lost");
      const object = await createObject(owner.server.client, space.id, named("the oldest"));
      let away = await startDevice({ network, dataDir: awayRoot.path });
      await joinOpen(owner, away, space.id);
      await untilSame([owner, away], space.id, (rows) => rows.includes("the oldest"), WAIT_MS);
      await away.server.stop();
      const guest = await owner.server.client.post<{ inviteToken: string }>(
        `/v1/spaces/${space.id}/guest-key`,
        {},
        201,
      );
      await rotate(owner, space.id, 3);
      await setName(owner, space.id, object.id, "before the loss");
      await forceSynced(owner, space.id);
      await nats.stop();
      nats.wipeStore();
      await nats.start();
      await forceSynced(owner, space.id);
      away = await startDevice({ network, dataDir: awayRoot.path });
      await using _away = away;
      await untilSame([owner, away], space.id, (rows) => rows.includes("before the loss"), WAIT_MS);
      await using late = await startDevice({ network });
      await late.server.client.post("/v1/spaces/join", { inviteToken: guest.inviteToken }, 202);
      await untilRead(late, space.id, "before the loss");
    },
    LONG_MS,
  );
});
