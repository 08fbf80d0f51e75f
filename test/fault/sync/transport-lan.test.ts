/** The LAN as a transport: real links over TLS on loopback, found by multicast. */

import { systemClock } from "../../../src/base/clock.ts";
import type { SpaceId } from "../../../src/base/ids.ts";
import { silentLog } from "../../../src/base/log.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { systemTimers } from "../../../src/base/timers.ts";
import { createLanSync } from "../../../src/sync/lan/lan-sync.ts";
import { type LinkManager, startLinkManager } from "../../../src/sync/lan/link-manager.ts";
import { until } from "../../support/server/client.ts";
import { type TransportEnds, transportContract } from "../../support/worlds/transport-contract.ts";

/** Every pair has a multicast port of its own, so that none hears another's peers. */
let mdnsPort = 20_000 + Math.floor(Math.random() * 20_000);

transportContract("LAN", async (): Promise<TransportEnds> => {
  mdnsPort++;
  const own = randomBytes(32);
  const managers: LinkManager[] = [];
  /** Before they meet they look for each other in different places. */
  let met = false;
  return {
    clock: systemClock,
    timers: systemTimers,
    async open(host, device) {
      const shown: { spaceId: SpaceId; key: Uint8Array }[] = [];
      const links = await startLinkManager({
        deviceSeed: randomBytes(32),
        account: device.account.signer,
        log: silentLog,
        host: "127.0.0.1",
        discoverOn: () => (met ? ["127.0.0.1"] : []),
        mdnsPort,
        port: {
          keys: () => ({ own, spaces: [{ spaceId: device.space.id, key: own }, ...shown] }),
          connected: () => host.roundSoon(device.space.id),
          disconnected: () => {},
          spacesChanged: () => {},
        },
      });
      managers.push(links);
      return createLanSync({
        ...host,
        links,
        techId: device.space.id,
        inviteSeedOf: () => undefined,
        showKey: (spaceId, key) => {
          const one = { spaceId, key };
          shown.push(one);
          return () => void shown.splice(shown.indexOf(one), 1);
        },
        chunk: async () => new Uint8Array(0),
      });
    },
    async meet() {
      met = true;
      await until(() => managers.every((manager) => manager.links().length > 0), "the two meet", 20_000);
    },
    async part() {
      for (const manager of managers.splice(0)) await manager[Symbol.asyncDispose]();
    },
    run: (work) => work,
    until: (holds, what) => until(holds, what, 20_000),
    async [Symbol.asyncDispose]() {
      for (const manager of managers) await manager[Symbol.asyncDispose]();
    },
  };
});
