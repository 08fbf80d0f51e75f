/** The network as a transport: a real server that keeps what each left there. */
import { systemClock } from "../../../src/base/clock.ts";
import { systemTimers } from "../../../src/base/timers.ts";
import type { NetworkStore } from "../../../src/sync/network/network-store.ts";
import { createNetworkSync } from "../../../src/sync/network/network-sync.ts";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { until } from "../../support/server/client.ts";
import { openStore } from "../../support/worlds/network-replica.ts";
import { type TransportEnds, transportContract } from "../../support/worlds/transport-contract.ts";

describeWithNats("with a server", () => {
  transportContract("network", async (): Promise<TransportEnds> => {
    const nats = await startNats();
    await nats.stop();
    const stores: NetworkStore[] = [];
    return {
      clock: systemClock,
      timers: systemTimers,
      async open(host) {
        const store = openStore(nats.url);
        stores.push(store);
        return createNetworkSync({
          ...host,
          store,
          hintsOf: async () => ({ secrets: [], seeds: [] }),
          inviteSeedOf: () => undefined,
        });
      },
      async meet() {
        await nats.start();
        for (const store of stores) store.hurry();
        await until(() => stores.every((store) => store.state().phase === "online"), "the network", 20_000);
      },
      part: () => nats.kill(),
      run: (work) => work,
      until: (holds, what) => until(holds, what, 30_000),
      [Symbol.asyncDispose]: () => nats[Symbol.asyncDispose](),
    };
  });
});
