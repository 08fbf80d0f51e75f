/** A rotation is cut short by SIGKILL at messages that its device exchanges with the network, one after the other: one log, nothing lost. */
import { expect } from "bun:test";
import { inSpaceOf } from "../../support/hostile/former-reader.ts";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { type NatsProxy, startNatsProxy } from "../../support/network/nats-proxy.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { until } from "../../support/server/client.ts";
import { type Device, forceSynced, joinOpen, setName, startDevice, untilSame } from "../../support/server/devices.ts";
import { createObject, createSpace, named } from "../../support/server/fixtures.ts";
import { createAccount } from "../../support/worlds/acl-world.ts";
import { knownAccount } from "../../support/worlds/known-account.ts";
import { allOn, faultsOnNetwork, rotate } from "../../support/worlds/rotations.ts";

const LONG_MS = 240_000;
const WAIT_MS = 60_000;
/** More than a rotation or a walk takes: then something goes round in circles. */
const MESSAGES_MAX = 90;
/** Messages from one kill to the next; `KILL_STEP=1` for each of them. The schedules of test/property kill at any, too. */
const STEP = Number(process.env["KILL_STEP"] ?? 4);
/** The way to the present place takes more messages than a rotation. */
const WALK_STEP = Number(process.env["KILL_STEP"] ?? 6);

const rosterOf = async (device: Device, spaceId: string): Promise<string> =>
  JSON.stringify((await device.server.client.get<{ members: unknown }>(`/v1/spaces/${spaceId}/members`)).members);

/** They show the same rows and members, have nothing to complain of, and say that they are synced. */
async function expectOne(
  devices: readonly Device[],
  spaceId: string,
  isWhole: (rows: string) => boolean,
): Promise<void> {
  await untilSame(devices, spaceId, isWhole, WAIT_MS);
  await until(
    async () => new Set(await Promise.all(devices.map((device) => rosterOf(device, spaceId)))).size === 1,
    "one roster",
    WAIT_MS,
  );
  for (const device of devices) {
    const debug = await device.server.client.get<unknown>(`/v1/spaces/${spaceId}/debug`);
    expect(debug).toMatchObject({ parked: 0, quarantined: [], alarms: [], cut: [], networkResets: 0 });
  }
}

/** What is under way has come to rest, so that the next message belongs to what is done next. */
const atRest = async (devices: readonly Device[], spaceId: string): Promise<void> => {
  for (const device of devices) await forceSynced(device, spaceId);
};

const killedAt = (proxy: NatsProxy, device: Device, at: number, isPassed: boolean, except: ReadonlySet<string>) =>
  proxy.arm({ at, isPassed, strike: () => device.server.signal("SIGKILL") }, except);

describeWithNats("rotations on a network, killed", () => {
  rule(
    "[ACL-7] an owner's device that is killed at any message of a rotation, while another of it rotates too, leaves one log",
    async () => {
      await using nats = await startNats();
      await using proxy = await startNatsProxy(nats.port);
      using root = scratchDir("svc-first");
      const account = await knownAccount();
      const { mnemonic } = account;
      const start = () =>
        startDevice({ network: proxy.url, dataDir: root.path, mnemonic, env: { SVC_SYNC_INTERVAL: "1h" } });
      let first = await start();
      const others = new Set(proxy.tags());
      await using second = await startDevice({ network: nats.url, mnemonic });
      await using member = await startDevice({ network: nats.url });
      const space = await createSpace(first.server.client, "Killed");
      const base = `/v1/spaces/${space.id}`;
      const object = await createObject(first.server.client, space.id, named("begun"));
      await joinOpen(first, member, space.id);
      await untilSame([first, second, member], space.id, (rows) => rows.includes("begun"), WAIT_MS);
      const remove = (device: Device, identity: string) =>
        device.server.client
          .request("POST", `${base}/acl/remove`, { body: { identities: [identity] } })
          .then(({ status }) => status)
          .catch(() => 0); // it was killed
      let kills = 0;
      for (let at = 1; at < MESSAGES_MAX; at += STEP) {
        const isPassed = at % (2 * STEP) === 1;
        const identities = [createAccount().id, createAccount().id];
        const accounts = identities.map((identity) => ({ identity, permission: "reader" }));
        await first.server.client.post(`${base}/acl/add`, { accounts }, 204);
        await atRest([first, second], space.id);
        const struck = killedAt(proxy, first, at, isPassed, others);
        // Where a message is lost, the other device takes the place meanwhile.
        const removing = [remove(first, identities[0]!), ...(isPassed ? [] : [remove(second, identities[1]!)])];
        await Promise.all(removing);
        await first.server.client.request("POST", `${base}/sync`).catch(() => undefined); // it may have been killed
        if (!struck()) break;
        kills++;
        await first.server.kill();
        first = await start();
        await setName(first, space.id, object.id, `round ${at}`);
        await createObject(member.server.client, space.id, named(`of the member ${at}`));
        const isWhole = (rows: string) => rows.includes(`round ${at}"`) && rows.includes(`of the member ${at}"`);
        await expectOne([first, second, member], space.id, isWhole);
        for (const identity of identities)
          if ((await rosterOf(first, space.id)).includes(identity)) await remove(first, identity);
      }
      expect(kills).toBeGreaterThan(4);
      await atRest([first, second, member], space.id);
      await first.server.stop();
      const of = { dataDir: root.path, account, spaceId: space.id };
      const messages = await allOn(nats);
      expect(await inSpaceOf(of, (copy) => faultsOnNetwork(messages, copy))).toEqual([]);
      console.log(`killed ${kills} times`);
    },
    LONG_MS,
  );

  rule(
    "[ACL-7] a member that is killed at any message of its way to the present place arrives all the same, with what it wrote",
    async () => {
      await using nats = await startNats();
      await using proxy = await startNatsProxy(nats.port);
      using root = scratchDir("svc-walker");
      const account = await knownAccount();
      let spawned: { kill(): void } | undefined;
      const onSpawn = (child: { kill(): void }) => {
        spawned = child;
      };
      const env = { SVC_SYNC_INTERVAL: "1h" };
      const start = () =>
        startDevice({ network: proxy.url, dataDir: root.path, mnemonic: account.mnemonic, env, onSpawn });
      await using owner = await startDevice({ network: nats.url });
      let walker = await start();
      const others = new Set(proxy.tags());
      const space = await createSpace(owner.server.client, "Walked");
      const object = await createObject(owner.server.client, space.id, named("begun"));
      await joinOpen(owner, walker, space.id);
      await untilSame([owner, walker], space.id, (rows) => rows.includes("begun"), WAIT_MS);
      let kills = 0;
      for (let at = 1; at < MESSAGES_MAX; at += WALK_STEP) {
        await forceSynced(walker, space.id);
        proxy.block(true);
        await setName(walker, space.id, object.id, `away ${at}`);
        await walker.server.kill();
        await rotate(owner, space.id, 2);
        await createObject(owner.server.client, space.id, named(`of the owner ${at}`));
        proxy.block(false);
        const struck = proxy.arm({ at, isPassed: at % (2 * WALK_STEP) === 1, strike: () => spawned!.kill() }, others);
        const boot = start().then(async (device) => {
          walker = device;
          await device.server.client.request("POST", `/v1/spaces/${space.id}/sync`);
        });
        await boot.catch(() => undefined); // it may have been killed
        if (!struck()) break;
        kills++;
        walker = await start();
        const isWhole = (rows: string) => rows.includes(`of the owner ${at}"`) && rows.includes(`away ${at}"`);
        await expectOne([owner, walker], space.id, isWhole);
      }
      expect(kills).toBeGreaterThan(4);
      for (const device of [owner, walker]) await forceSynced(device, space.id);
      await walker.server.stop();
      const of = { dataDir: root.path, account, spaceId: space.id };
      const messages = await allOn(nats);
      expect(await inSpaceOf(of, (copy) => faultsOnNetwork(messages, copy))).toEqual([]);
      console.log(`killed ${kills} times`);
    },
    LONG_MS,
  );
});
