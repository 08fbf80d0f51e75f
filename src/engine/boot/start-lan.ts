import { ACL_SECRETS_DATASET } from "../../account/own-space/private-datasets.ts";
import { inboxLinkKeyOf } from "../../acl/record/space-keys.ts";
import { createSingleFlight, type SingleFlight } from "../../base/single-flight.ts";
import { systemTimers } from "../../base/timers.ts";
import { deriveAccountSecret } from "../../crypto/account-keys.ts";
import { createLanEvents } from "../../sync/lan/lan-events.ts";
import type { LinkManager } from "../../sync/lan/link-manager.ts";
import type { PeerLink } from "../../sync/lan/peer-link.ts";
import type { Started, TransportsDeps } from "./transport-start.ts";

/** The message by which a peer hands over an inbox message for this account. */
const INBOX_MESSAGE = "inbox-message";
const COMPARE_AGAIN_MS = 150;

/** Joins the LAN, which is reached with the first device that is met. What it begins is ended with `begun`. */
export async function startLan(deps: TransportsDeps, begun: AsyncDisposableStack): Promise<Started | undefined> {
  const { transports, sync, account, clock, log, linkKeys, outbox, received, relay } = deps;
  const [{ createLanSync }, { startLinkManager }] = await Promise.all([
    import("../../sync/lan/lan-sync.ts"),
    import("../../sync/lan/link-manager.ts"),
  ]);
  if (deps.isClosing()) return undefined;

  const met = Promise.withResolvers<boolean>();
  const own = deriveAccountSecret(account.seed, "p2p");
  const inboxes = () => [account.signer.publicKey, ...outbox.receivers()].map(inboxLinkKeyOf);
  const handInboxMessages = createHandOver(deps);
  const links = await startLinkManager({
    deviceSeed: deps.deviceSeed,
    account: account.signer,
    log,
    listenPort: deps.config["p2p.port"],
    port: {
      keys: () => ({ own, spaces: linkKeys.all(), inboxMessages: inboxes() }),
      connected: (link) => {
        met.resolve(true);
        handInboxMessages(link);
        deps.usePeer(link);
        sync.notifyReach();
        if (link.own) sync.allSoon();
        else for (const spaceId of link.sharedSpaces()) sync.roundSoon(spaceId);
      },
      disconnected: () => sync.notifyReach(),
      ownKeySeen: () => sync.copy.seen("lan"),
      spacesChanged: (link) => {
        sync.notifyReach();
        for (const spaceId of link.sharedSpaces()) sync.roundSoon(spaceId);
      },
    },
  });
  begun.use(links);
  if (deps.isClosing()) return undefined; // sync, which closes what joins, may have stopped

  links.onRequest(INBOX_MESSAGE, async (link, body) => {
    await received.take(body, link.accountId);
    return new Uint8Array(0);
  });
  transports.join({
    ...createLanSync({
      ...{ links, clock, log },
      timers: systemTimers,
      book: sync.book,
      techId: deps.tech.id,
      open: deps.open,
      inviteSeedOf: deps.inviteSeedOf,
      showKey: linkKeys.show,
      roundSoon: sync.roundSoon,
      hold: sync.hold,
      notifyChanged: sync.notifyChanged,
      notifyProgress: sync.notifyProgress,
      markOf: sync.markOf,
      chunk: deps.serveChunk,
    }),
    events: createLanEvents({ links, techId: deps.tech.id, log, open: deps.open, take: relay.take }),
    lan: {
      state: () => links.state(),
      debug: () => {
        const seen = links.debug();
        return { ...seen, peers: seen.peers.map((peer) => ({ ...peer, spaceIds: [...peer.spaceIds] })) };
      },
    },
  });
  begun.use(followKeys(deps, links, handInboxMessages));
  return { reached: met.promise };
}

/** Hands a peer the inbox messages for its account, one batch after the other: those that arrive during a batch form the next one together. */
function createHandOver({ outbox, log }: TransportsDeps): (link: PeerLink) => void {
  const handings = new WeakMap<PeerLink, SingleFlight>();
  return (link) => {
    const give = async (sealed: Uint8Array) => void (await link.request(INBOX_MESSAGE, sealed));
    const flight = handings.get(link) ?? createSingleFlight();
    handings.set(link, flight);
    flight
      .run(INBOX_MESSAGE, () => outbox.handOver(link.accountId, give))
      .catch((error: unknown) => log.debug("inbox: one was not taken by a peer", { err: error }));
  };
}

/** Peers are compared with anew whenever a key by which they may be recognised has come or gone. */
function followKeys(deps: TransportsDeps, links: LinkManager, handInboxMessages: (link: PeerLink) => void): Disposable {
  let comparing: ReturnType<typeof setTimeout> | undefined;
  const compareSoon = (): void => {
    comparing ??= setTimeout(() => {
      comparing = undefined;
      links.spacesChanged();
    }, COMPARE_AGAIN_MS);
  };
  const stops = [
    deps.outbox.onChange(() => {
      for (const link of links.links()) handInboxMessages(link);
      compareSoon();
    }),
    deps.linkKeys.onChange((atOnce) => (atOnce ? links.spacesChanged() : compareSoon())),
    deps.tech.events.on("committed", (batch) => {
      if (batch.touched.some(({ dataset }) => dataset === ACL_SECRETS_DATASET)) compareSoon();
    }),
  ];
  return {
    [Symbol.dispose]: () => {
      for (const stop of stops) stop();
      clearTimeout(comparing);
    },
  };
}
