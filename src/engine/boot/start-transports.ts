import { readFile } from "node:fs/promises";
import { ACL_SECRETS_DATASET } from "../../account/private-datasets.ts";
import { inboxLinkKeyOf } from "../../acl/record/space-keys.ts";
import type { Clock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Service } from "../../base/service.ts";
import { createSingleFlight, type SingleFlight } from "../../base/single-flight.ts";
import { systemTimers } from "../../base/timers.ts";
import type { Account } from "../../crypto/account.ts";
import { deriveAccountSecret } from "../../crypto/account-keys.ts";
import type { Replica } from "../../space/port/replica.ts";
import type { Space } from "../../space/space.ts";
import type { EventRelay } from "../../sync/event-relay.ts";
import type { InboxMessages } from "../../sync/inbox/inbox-messages.ts";
import type { createChunkServer } from "../../sync/lan/lan-chunks.ts";
import { createLanEvents } from "../../sync/lan/lan-events.ts";
import type { PeerLink } from "../../sync/lan/peer-link.ts";
import { watchForCopies } from "../../sync/network/copy-watch.ts";
import type { SpaceHints } from "../../sync/network/hint-follower.ts";
import { createNetworkEvents } from "../../sync/network/network-events.ts";
import type { NetworkStore } from "../../sync/network/network-store.ts";
import type { NetworkServers } from "../../sync/network/network-url.ts";
import type { SyncService } from "../../sync/sync-service.ts";
import type { Config } from "../config/config.ts";
import type { LinkKeys } from "../link-keys.ts";

interface TransportsDeps {
  readonly config: Config;
  readonly account: Account;
  readonly deviceSeed: Uint8Array;
  readonly clock: Clock;
  readonly log: Log;
  readonly sync: SyncService;
  readonly tech: Space;
  readonly relay: EventRelay;
  readonly inboxMessages: InboxMessages;
  readonly linkKeys: LinkKeys;
  /** Whether others may have changes that this device lacks; boot then waits for them for a moment. */
  mayHaveOthers(): boolean;
  /** Returns the places on the network at which others say that a space is. */
  hintsOf(spaceId: SpaceId): SpaceHints;
  /** Returns the secret of the token by which this account joins, or joined, a space. */
  inviteSeedOf(spaceId: SpaceId): Uint8Array | undefined;
  /** Adds the network, or a peer, as a place for files. */
  useNetwork(store: NetworkStore): void;
  usePeer(link: PeerLink): void;
  serveChunk: ReturnType<typeof createChunkServer>;
  /** A space that is active here, opened; undefined for anything else. */
  open(spaceId: string): Promise<Replica | undefined>;
}

/** The message by which a peer hands over an inbox message for this account. */
const INBOX_MESSAGE = "inbox-message";
const COMPARE_AGAIN_MS = 150;
/** How long the boot pass waits for the network, or for another device on the LAN, before it goes on without it. */
const CONNECT_WAIT_MS = 3_000;

/** Boot, phase 4, the first of the workers. Connects sync with the LAN and the network, as configured. Nothing else needs either of them. */
export function createTransportsService(deps: TransportsDeps): Service {
  const { config } = deps;
  let lan: Lan | undefined;
  let network: NetworkStart | undefined;
  return {
    name: "transports",
    async start() {
      network = config["network.url"] ? await startNetwork(deps, config["network.url"]) : undefined;
      lan = config["p2p.enabled"] ? await startLan(deps) : undefined;
      const reached = [network?.reached, lan && deps.mayHaveOthers() ? lan.met : undefined];
      await Promise.race([anyOf(reached.filter((each) => each !== undefined)), Bun.sleep(CONNECT_WAIT_MS)]);
    },
    stop() {
      network?.close();
      return lan?.close();
    },
  };
}

/** Resolves as soon as one answer is true, or when all are false. */
async function anyOf(answers: readonly Promise<boolean>[]): Promise<void> {
  const reached = answers.map(async (answer) => (await answer) || Promise.reject(new Error("not reached")));
  await Promise.any(reached).catch(() => undefined); // that no transport is reached is an answer, too
}

interface NetworkStart {
  readonly reached: Promise<boolean>;
  close(): void;
}

/** Joins the network. `reached` settles when it is known whether it serves. */
async function startNetwork(deps: TransportsDeps, servers: NetworkServers): Promise<NetworkStart> {
  const { sync, account, log, config } = deps;
  const [{ createNetworkStore }, { createNetworkSync }, { createNetworkKey }] = await Promise.all([
    import("../../sync/network/network-store.ts"),
    import("../../sync/network/network-sync.ts"),
    import("../../sync/network/nkey.ts"),
  ]);
  const creds = config["network.credsFile"];
  const tlsCa = config["network.tls.ca"];
  const store = createNetworkStore({
    servers,
    credentials: {
      key: createNetworkKey(deriveAccountSecret(account.seed, "network")),
      ...(creds === undefined ? {} : { creds: await readFile(creds, "utf8") }),
      ...(tlsCa === undefined ? {} : { tlsCa: await readFile(tlsCa, "utf8") }),
    },
    clock: deps.clock,
    log,
  });
  sync.addTransport(
    createNetworkSync({
      store,
      book: sync.book,
      clock: deps.clock,
      log,
      timers: systemTimers,
      open: deps.open,
      inviteSeedOf: deps.inviteSeedOf,
      hintsOf: async (spaceId) => {
        await deps.inboxMessages.caughtUp(); // an account that added this one says in an inbox message where the space is
        return deps.hintsOf(spaceId);
      },
      hold: sync.hold,
      notifyChanged: sync.notifyChanged,
      notifyProgress: sync.notifyProgress,
      notifyStatus: sync.notifyStatus,
    }),
  );
  await deps.relay.addTransport(createNetworkEvents(store, log));
  deps.inboxMessages.connect(store);
  deps.useNetwork(store);
  sync.setNetwork({ init: (replicas) => store.init(replicas) });
  const transportSecret = deps.tech.replica.transportSecret();
  const readKey = deps.tech.keys.current()?.key;
  const copies =
    transportSecret && readKey
      ? watchForCopies({
          store,
          peerId: account.peerId,
          transportSecret,
          readKey,
          seen: () => sync.copy.seen("network"),
        })
      : undefined;
  const settled = Promise.withResolvers<boolean>();
  let known = store.state().phase;
  store.onState(({ phase }) => {
    if (phase !== "connecting") settled.resolve(phase === "online");
    sync.notifyReach();
    if (phase === "online" && known !== "online") sync.allSoon();
    known = phase;
  });
  return { reached: settled.promise, close: () => copies?.[Symbol.dispose]() };
}

interface Lan {
  /** Settles with the first device that is met. */
  readonly met: Promise<boolean>;
  close(): Promise<void>;
}

async function startLan(deps: TransportsDeps): Promise<Lan> {
  const { sync, account, log, config, linkKeys, inboxMessages } = deps;
  const [{ createLanSync }, { startLinkManager }] = await Promise.all([
    import("../../sync/lan/lan-sync.ts"),
    import("../../sync/lan/link-manager.ts"),
  ]);
  const met = Promise.withResolvers<boolean>();
  const own = deriveAccountSecret(account.seed, "p2p");
  const inboxes = () => [account.signer.publicKey, ...inboxMessages.receivers()].map(inboxLinkKeyOf);
  /** Inbox messages are handed over one batch after the other: those that arrive during a batch form the next one together. */
  const handings = new WeakMap<PeerLink, SingleFlight>();
  const handInboxMessages = (link: PeerLink): void => {
    const give = async (sealed: Uint8Array) => void (await link.request(INBOX_MESSAGE, sealed));
    const flight = handings.get(link) ?? createSingleFlight();
    handings.set(link, flight);
    flight
      .run(INBOX_MESSAGE, () => inboxMessages.handOver(link.accountId, give))
      .catch((error: unknown) => log.debug("inbox: one was not taken by a peer", { err: error }));
  };
  const links = await startLinkManager({
    deviceSeed: deps.deviceSeed,
    account: account.signer,
    log,
    listenPort: config["p2p.port"],
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
  links.onRequest(INBOX_MESSAGE, async (link, body) => {
    await inboxMessages.receive(link.accountId, body);
    return new Uint8Array(0);
  });
  sync.setLan({
    state: () => links.state(),
    debug: () => {
      const seen = links.debug();
      return { ...seen, peers: seen.peers.map((peer) => ({ ...peer, spaceIds: [...peer.spaceIds] })) };
    },
  });
  sync.addTransport(
    createLanSync({
      links,
      book: sync.book,
      clock: deps.clock,
      log,
      timers: systemTimers,
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
  );
  await deps.relay.addTransport(
    createLanEvents({ links, techId: deps.tech.id, log, open: deps.open, take: deps.relay.take }),
  );

  let comparing: ReturnType<typeof setTimeout> | undefined;
  const compareSoon = (): void => {
    comparing ??= setTimeout(() => {
      comparing = undefined;
      links.spacesChanged();
    }, COMPARE_AGAIN_MS);
  };
  inboxMessages.onOutbox(() => {
    for (const link of links.links()) handInboxMessages(link);
    compareSoon();
  });
  linkKeys.onChange((atOnce) => (atOnce ? links.spacesChanged() : compareSoon()));
  deps.tech.events.on("committed", (batch) => {
    if (batch.touched.some(({ dataset }) => dataset === ACL_SECRETS_DATASET)) compareSoon();
  });
  return {
    met: met.promise,
    close: async () => {
      clearTimeout(comparing);
      linkKeys.close();
      await links[Symbol.asyncDispose]();
    },
  };
}
