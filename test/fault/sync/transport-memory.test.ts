/** Links in memory as a transport, on a virtual clock: what the schedules of `test/property/sync-schedules.test.ts` run on. */
import type { PeerId, SpaceId } from "../../../src/base/ids.ts";
import { createLanSync } from "../../../src/sync/lan/lan-sync.ts";
import { createRng } from "../../support/rng.ts";
import type { Device } from "../../support/worlds/acl-devices.ts";
import { createMemoryLinks } from "../../support/worlds/memory-links.ts";
import { type TransportEnds, transportContract } from "../../support/worlds/transport-contract.ts";
import { createVirtualTime } from "../../support/worlds/virtual-time.ts";

transportContract("memory", async (): Promise<TransportEnds> => {
  const devices: Device[] = [];
  const time = createVirtualTime(async () => {
    for (const { space } of devices) if (!space.engine.closing()) await space.engine.idle();
  });
  const links = createMemoryLinks(time, createRng(1));
  const peerOf = (device: Device): PeerId => device.name as PeerId;
  return {
    clock: time.clock,
    timers: time,
    async open(host, device) {
      devices.push(device);
      device.space.events.on("committed", () => time.stir());
      return createLanSync({
        ...host,
        links: links.join({
          peerId: peerOf(device),
          accountId: device.account.id,
          spaces: () => [device.space.id],
          connected: () => {},
          disconnected: () => {},
        }),
        techId: "" as SpaceId,
        inviteSeedOf: () => undefined,
        showKey: () => () => {},
        chunk: async () => new Uint8Array(0),
      });
    },
    meet: async () => links.connect(peerOf(devices[0]!), peerOf(devices[1]!)),
    part: async () => links.cut(peerOf(devices[0]!), peerOf(devices[1]!)),
    run: time.runWhile,
    async until(holds, what) {
      for (let attempt = 0; !(await holds()); attempt++) {
        if (attempt > 1_000) throw new Error(`waited in vain for: ${what}`);
        await time.runFor(100);
      }
    },
    async [Symbol.asyncDispose]() {},
  };
});
