/** What a device gave up and needs after all is read from the network again. */
import { expect } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLog } from "../../../src/base/log.ts";
import { systemTimers } from "../../../src/base/timers.ts";
import { DELETED_GRACE_MS } from "../../../src/change/fold/object-deletions.ts";
import { createNetworkSync } from "../../../src/sync/network/network-sync.ts";
import { createProgressBook } from "../../../src/sync/progress.ts";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { rule } from "../../support/rule.ts";
import { until } from "../../support/server/client.ts";
import { add, type Device, fetchFrom, purgedAfter, remove, withDevices } from "../../support/worlds/acl-devices.ts";
import { createAccount } from "../../support/worlds/acl-world.ts";
import { openStore } from "../../support/worlds/network-replica.ts";

/** A device's way to the network. */
async function networkOf(url: string, { space }: Device) {
  const store = openStore(url);
  await until(() => store.state().phase === "online", "the network");
  return createNetworkSync({
    store,
    book: createProgressBook(),
    clock: systemClock,
    log: silentLog,
    timers: systemTimers,
    open: async () => space.replica,
    hintsOf: async () => ({ secrets: [], seeds: [] }),
    inviteSeedOf: () => undefined,
    hold: (_spaceId, work) => work(),
    notifyChanged: () => {},
    notifyProgress: () => {},
    notifyStatus: () => {},
  });
}

const ITEMS = { name: "items", idRule: "user" } as const;

describeWithNats("bodies on the network", () => {
  rule("[CHANGE-8] a deletion that loses its right after the bodies were dropped: the network gives them back", () =>
    withDevices(async (devices) => {
      await using nats = await startNats();
      const owner = devices.open("owner", devices.owner);
      const witness = devices.open("witness", devices.owner);
      const account = createAccount();
      await add(owner, account);
      const member = devices.open("member", account);
      const id = await owner.space.engine.write((tx) => {
        const object = tx.createObject();
        const ops = [{ type: "$set" as const, path: "v", value: "text" }];
        tx.append(object, { dataset: "items", records: [{ id: "r", upsert: true, ops }] }, ITEMS);
        return object.idText;
      });
      const networks = await Promise.all([owner, witness].map((device) => networkOf(nats.url, device)));
      try {
        const round = async (): Promise<void> => {
          for (const [index, { space }] of [owner, witness].entries()) await networks[index]!.round(space.replica);
        };
        await round();
        await fetchFrom(member, owner);
        await member.space.engine.write((tx) => tx.deleteObject(tx.object(id)!));
        await fetchFrom(witness, member);
        expect(await purgedAfter(devices, witness, DELETED_GRACE_MS)).toBe(1);
        await round();
        await remove(owner, account);
        await witness.space.aclService.take(owner.aclLog());
        const { pendingBodies } = witness.space.store;
        expect(pendingBodies.count()).toBe(1);
        await round();
        expect(pendingBodies.count()).toBe(0);
        const object = witness.space.engine.object(id)!;
        expect(witness.space.engine.record(object, "items", "r")).toMatchObject({ v: "text" });
      } finally {
        await Promise.all(networks.map((network) => network.close()));
      }
    }),
  );
});
