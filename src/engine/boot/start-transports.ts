import type { Service } from "../../base/service.ts";
import { waitAtMost } from "../../base/timers.ts";
import { startLan } from "./start-lan.ts";
import { startNetwork } from "./start-network.ts";
import type { TransportsDeps } from "./transport-start.ts";

/** How long the boot pass waits for the network, or for another device on the LAN, before it goes on without it. */
const CONNECT_WAIT_MS = 3_000;

/** Boot, phase 4, the first of the workers: the network and the LAN, as configured, join the transports. Nothing else needs either. */
export function createTransportsService(deps: TransportsDeps): Service {
  const { config, isClosing } = deps;
  const begun = new AsyncDisposableStack();
  const ending = Promise.withResolvers<void>();
  let starting: Promise<void> = Promise.resolve();

  const startAll = async (): Promise<void> => {
    const url = config["network.url"];
    const network = url ? await startNetwork(deps, url, begun) : undefined;
    const lan = config["p2p.enabled"] && !isClosing() ? await startLan(deps, begun) : undefined;
    const reached = [network?.reached, lan && deps.mayHaveOthers() ? lan.reached : undefined];
    const isReached = anyOf(reached.filter((each) => each !== undefined));
    await waitAtMost(CONNECT_WAIT_MS, Promise.race([isReached, ending.promise]));
  };

  return {
    name: "transports",
    start() {
      starting = startAll();
      return starting;
    },
    async stop() {
      ending.resolve();
      await starting.catch(() => undefined); // whoever started it was told
      await begun.disposeAsync();
    },
  };
}

/** Resolves as soon as one answer is true, or when all are false. */
async function anyOf(answers: readonly Promise<boolean>[]): Promise<void> {
  const reached = answers.map(async (answer) => (await answer) || Promise.reject(new Error("not reached")));
  await Promise.any(reached).catch(() => undefined); // that no transport is reached is an answer, too
}
