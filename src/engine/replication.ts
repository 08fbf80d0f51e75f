import { readFile } from "node:fs/promises";
import { equalBytes } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import type { SpaceId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { deriveAccountSecret } from "../crypto/account-keys.ts";
import type { Account } from "../space/account.ts";
import { ACL_SECRETS_DATASET } from "../space/private-datasets.ts";
import type { Space } from "../space/space.ts";
import { inviteLinkKeyOf, lettersLinkKeyOf, linkKeyOf, pairLinkKeyOf } from "../space/space-keys.ts";
import { transportSecretOf } from "../space/space-roots.ts";
import type { SpacePlace } from "../sync/carrier.ts";
import { createLanEvents, createNetworkEvents } from "../sync/event-carriers.ts";
import type { EventRelay } from "../sync/event-relay.ts";
import { createLanSync } from "../sync/lan-sync.ts";
import type { Letters } from "../sync/letters.ts";
import { type LinkManager, startLinkManager } from "../sync/link/link-manager.ts";
import type { PeerLink } from "../sync/link/peer-link.ts";
import type { NetworkServers } from "../sync/network/network-url.ts";
import type { SyncService } from "../sync/sync-service.ts";
import type { Config } from "./config.ts";

export interface ReplicationDeps {
  readonly config: Config;
  readonly account: Account;
  readonly deviceSeed: Uint8Array;
  readonly clock: Clock;
  readonly log: Log;
  readonly sync: SyncService;
  readonly tech: Space;
  readonly relay: EventRelay;
  readonly letters: Letters;
  /** What the token says by which a space is joined, or was. */
  placeOf(spaceId: SpaceId): SpacePlace | undefined;
  /** Secret of the token by which a space is joined, or was. */
  inviteSeedOf(spaceId: SpaceId): Uint8Array | undefined;
  /** A space that is active here, opened; undefined for anything else. */
  open(spaceId: string): Promise<Space | undefined>;
}

export interface Replication {
  /** A space was opened, or its keys or members changed: peers recognise it by them. */
  spaceChanged(space: Space): void;
  spaceEnded(spaceId: SpaceId): void;
  close(): Promise<void>;
}

/** A peer hands over a letter for this account. */
const LETTER = "letter";
/**
 * How long who lost membership, or the guest key, may still recognise the space: it is served the chain of rights, which
 * says so, and no content.
 */
const FADE_MS = 20_000;
const COMPARE_AGAIN_MS = 150;
/** How long the boot pass waits for the network before it goes on without. */
const CONNECT_WAIT_MS = 3_000;

/** Connects sync with what there is of LAN and network, as configured. Neither is needed by anything else. */
export async function startReplication(deps: ReplicationDeps): Promise<Replication> {
  const keysBySpace = new Map<SpaceId, Uint8Array[]>();
  /** Shown while a space is looked for that is not held here. */
  const shownKeys = new Set<{ spaceId: SpaceId; key: Uint8Array }>();
  let links: LinkManager | undefined;
  let comparing: ReturnType<typeof setTimeout> | undefined;
  const compareSoon = (): void => {
    comparing ??= setTimeout(() => {
      comparing = undefined;
      links?.spacesChanged();
    }, COMPARE_AGAIN_MS);
  };

  /** Keys that are no longer a space's: whoever was known by them alone is told why before the link ends. */
  const fading = new Map<SpaceId, Uint8Array[]>();
  const timers = new Set<ReturnType<typeof setTimeout>>();
  const fade = (spaceId: SpaceId, keys: readonly Uint8Array[]): void => {
    if (keys.length === 0) return;
    fading.set(spaceId, [...(fading.get(spaceId) ?? []), ...keys]);
    const timer = setTimeout(() => {
      timers.delete(timer);
      fading.set(
        spaceId,
        (fading.get(spaceId) ?? []).filter((key) => !keys.includes(key)),
      );
      compareSoon();
    }, FADE_MS);
    timers.add(timer);
  };

  const { config } = deps;
  if (config["network.url"]) await startNetwork(deps, config["network.url"]);
  if (config["p2p.enabled"]) {
    const showKey = (spaceId: SpaceId, key: Uint8Array): (() => void) => {
      const shown = { spaceId, key };
      shownKeys.add(shown);
      links?.spacesChanged();
      return () => {
        shownKeys.delete(shown);
        compareSoon();
      };
    };
    const keys = () => [
      ...[...keysBySpace].flatMap(([spaceId, known]) =>
        [...known, ...tokenKeys(deps.placeOf(spaceId))].map((key) => ({ spaceId, key })),
      ),
      ...[...fading].flatMap(([spaceId, former]) => former.map((key) => ({ spaceId, key }))),
      ...shownKeys,
    ];
    links = await startLan(deps, keys, showKey, compareSoon);
    deps.tech.engine.onCommit((batch) => {
      if (batch.touched.some(({ dataset }) => dataset === ACL_SECRETS_DATASET)) compareSoon();
    });
  }

  return {
    spaceChanged(space) {
      if (space.id === deps.tech.id) return;
      const keys = linkKeysOf(space, deps.account);
      const known = keysBySpace.get(space.id) ?? [];
      if (known.length === keys.length && keys.every((key, index) => equalBytes(key, known[index]!))) return;
      keysBySpace.set(space.id, keys);
      fade(
        space.id,
        known.filter((key) => !keys.some((other) => equalBytes(key, other))),
      );
      compareSoon();
    },
    spaceEnded(spaceId) {
      deps.relay.forget(spaceId);
      fading.delete(spaceId);
      if (keysBySpace.delete(spaceId)) compareSoon();
    },
    async close() {
      clearTimeout(comparing);
      for (const timer of timers) clearTimeout(timer);
      await links?.[Symbol.asyncDispose]();
    },
  };
}

/** How many members are recognised one by one; beyond, the present read key has to do. */
const PAIRS = 64;

/**
 * The keys by which devices recognise a space they share: whoever holds the present read key has the first; the secret
 * of two members lets one that missed a change of keys back in, and nobody that lost membership; who holds an invite or
 * the guest key finds the space by it.
 */
function linkKeysOf(space: Space, account: Account): Uint8Array[] {
  const { state } = space.acl;
  const current = space.keys.current();
  const keys = current ? [linkKeyOf(space.id, current.key)] : [];
  const others = [...state.members.values()].filter(
    (member) => member.status === "active" && !equalBytes(member.account, account.signer.publicKey),
  );
  for (const { account: other } of others.slice(0, PAIRS)) keys.push(pairLinkKeyOf(space.id, account, other));
  const secret = transportSecretOf(space);
  if (secret) {
    for (const { key } of state.invites.values()) keys.push(inviteLinkKeyOf(space.id, secret, key));
    if (state.guest) keys.push(inviteLinkKeyOf(space.id, secret, state.guest.key));
  }
  return keys;
}

/** While one is let in nowhere yet, the token alone makes one known to the space's members. Tokens come and go. */
function tokenKeys(place: SpacePlace | undefined): Uint8Array[] {
  return place ? [place.linkKey] : [];
}

/** Joins the network, and waits a moment for it, so that what was missed comes with the boot pass. */
async function startNetwork(deps: ReplicationDeps, servers: NetworkServers): Promise<void> {
  const { sync, account, log, config } = deps;
  const [{ createNetworkStore }, { createNetworkSync }, { createNetworkKey }] = await Promise.all([
    import("../sync/network/network-store.ts"),
    import("../sync/network-sync.ts"),
    import("../sync/network/nkey.ts"),
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
  sync.addCarrier(
    createNetworkSync({
      store,
      book: sync.book,
      clock: deps.clock,
      log,
      open: deps.open,
      inviteSeedOf: deps.inviteSeedOf,
      secretOf: (space) => transportSecretOf(space) ?? deps.placeOf(space.id)?.transportSecret,
      touch: sync.touch,
      stateChanged: sync.stateChanged,
      holding: sync.holding,
    }),
  );
  await deps.relay.addCarrier(createNetworkEvents(store, log));
  deps.letters.connect(store);
  sync.setNetwork({ init: (replicas) => store.init(replicas) });
  const settled = Promise.withResolvers<void>();
  let known = store.state().phase;
  store.onState(({ phase }) => {
    if (phase !== "connecting") settled.resolve();
    sync.reachChanged();
    if (phase === "online" && known !== "online") sync.allSoon();
    known = phase;
  });
  await Promise.race([settled.promise, Bun.sleep(CONNECT_WAIT_MS)]);
}

async function startLan(
  deps: ReplicationDeps,
  spaceKeys: () => { spaceId: SpaceId; key: Uint8Array }[],
  showKey: (spaceId: SpaceId, key: Uint8Array) => () => void,
  lettersChanged: () => void,
): Promise<LinkManager> {
  const { sync, account, log, config } = deps;
  const own = deriveAccountSecret(account.seed, "p2p");
  const { letters } = deps;
  const letterBoxes = () => [account.signer.publicKey, ...letters.receivers()].map(lettersLinkKeyOf);
  const handing = new WeakMap<PeerLink, Promise<void>>();
  const handLetters = (link: PeerLink): void => {
    const give = async (sealed: Uint8Array) => void (await link.request(LETTER, sealed));
    const done = (handing.get(link) ?? Promise.resolve())
      .then(() => letters.handOver(link.accountId, give))
      .catch((error: unknown) => log.debug("letters: one was not taken by a peer", { err: error }));
    handing.set(link, done);
  };
  const links = await startLinkManager({
    deviceSeed: deps.deviceSeed,
    account: account.signer,
    log,
    listenPort: config["p2p.port"],
    port: {
      keys: () => ({ own, spaces: spaceKeys(), letters: letterBoxes() }),
      connected: (link) => {
        handLetters(link);
        sync.reachChanged();
        if (link.own) sync.allSoon();
        else for (const spaceId of link.sharedSpaces()) sync.roundSoon(spaceId);
      },
      disconnected: () => sync.reachChanged(),
      spacesChanged: (link) => {
        sync.reachChanged();
        for (const spaceId of link.sharedSpaces()) sync.roundSoon(spaceId);
      },
    },
  });
  links.onRequest(LETTER, async (link, body) => {
    await letters.receive(link.accountId, body);
    return new Uint8Array(0);
  });
  letters.onOutbox(() => {
    for (const link of links.links()) handLetters(link);
    lettersChanged();
  });
  sync.setLan({
    state: () => links.state(),
    debug: () => {
      const seen = links.debug();
      return { ...seen, peers: seen.peers.map((peer) => ({ ...peer, spaceIds: [...peer.spaceIds] })) };
    },
  });
  sync.addCarrier(
    createLanSync({
      links,
      book: sync.book,
      clock: deps.clock,
      log,
      techId: deps.tech.id,
      open: deps.open,
      showKey,
      roundSoon: (spaceId) => sync.roundSoon(spaceId),
      touch: sync.touch,
      markOf: sync.markOf,
      holding: sync.holding,
    }),
  );
  await deps.relay.addCarrier(
    createLanEvents({ links, techId: deps.tech.id, log, open: deps.open, take: deps.relay.take }),
  );
  return links;
}
