import { readFile } from "node:fs/promises";
import { startPart } from "../../base/service.ts";
import { systemTimers } from "../../base/timers.ts";
import { deriveAccountSecret } from "../../crypto/account-keys.ts";
import { createInboxDelivery } from "../../sync/inbox/inbox-delivery.ts";
import { createCopyWatch } from "../../sync/network/copy-watch.ts";
import { createNetworkEvents } from "../../sync/network/network-events.ts";
import type { NetworkStore } from "../../sync/network/network-store.ts";
import type { NetworkServers } from "../../sync/network/network-url.ts";
import type { Started, TransportsDeps } from "./transport-start.ts";

/** Joins the network, and starts what goes over it, which is stopped with `begun`. */
export async function startNetwork(
  deps: TransportsDeps,
  servers: NetworkServers,
  begun: AsyncDisposableStack,
): Promise<Started | undefined> {
  const { transports, sync, account, config, clock, log, tech, outbox, received } = deps;
  const [{ createNetworkStore }, { createNetworkSync }, { createNetworkKey }] = await Promise.all([
    import("../../sync/network/network-store.ts"),
    import("../../sync/network/network-sync.ts"),
    import("../../sync/network/nkey.ts"),
  ]);
  const creds = config["network.credsFile"];
  const tlsCa = config["network.tls.ca"];
  const credentials = {
    key: createNetworkKey(deriveAccountSecret(account.seed, "network")),
    ...(creds === undefined ? {} : { creds: await readFile(creds, "utf8") }),
    ...(tlsCa === undefined ? {} : { tlsCa: await readFile(tlsCa, "utf8") }),
  };
  if (deps.isClosing()) return undefined; // sync, which closes what joins, may have stopped

  const store = createNetworkStore({ servers, credentials, clock, log });
  const inbox = createInboxDelivery({ account, tech: tech.replica, network: store, outbox, received, log });
  transports.join({
    ...createNetworkSync({
      ...{ store, clock, log },
      timers: systemTimers,
      book: sync.book,
      open: deps.open,
      inviteSeedOf: deps.inviteSeedOf,
      hintsOf: async (spaceId) => {
        await inbox.caughtUp(); // an account that added this one says in an inbox message where the space is
        return deps.hintsOf(spaceId);
      },
      hold: sync.hold,
      notifyChanged: sync.notifyChanged,
      notifyProgress: sync.notifyProgress,
      notifyStatus: sync.notifyStatus,
    }),
    events: createNetworkEvents(store, log),
    init: (replicas) => store.init(replicas),
  });
  await startPart(begun, inbox);
  deps.useNetwork(store);
  const transportSecret = tech.replica.transportSecret();
  const readKey = tech.keys.current()?.key;
  if (transportSecret && readKey) {
    const seen = () => sync.copy.seen("network");
    await startPart(begun, createCopyWatch({ store, peerId: account.peerId, transportSecret, readKey, seen }));
  }
  return { reached: followState(store, sync) };
}

/** Rounds begin whenever the network is there again. Resolves when it is known whether it serves. */
function followState(store: NetworkStore, sync: TransportsDeps["sync"]): Promise<boolean> {
  const serves = Promise.withResolvers<boolean>();
  let known = store.state().phase;
  store.onState(({ phase }) => {
    if (phase !== "connecting") serves.resolve(phase === "online");
    sync.notifyReach();
    if (phase === "online" && known !== "online") sync.allSoon();
    known = phase;
  });
  return serves.promise;
}
