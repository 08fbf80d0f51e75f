import type { AclBuild, AclMade, ComposeOptions } from "../acl/compose.ts";
import type { Clock } from "../base/clock.ts";
import type { PeerId, SpaceId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { createSemaphore } from "../base/semaphore.ts";
import { createSingleFlight } from "../base/single-flight.ts";
import { svcError } from "../protocol/errors.ts";
import type {
  ObjectDebug,
  ObjectSyncStatus,
  P2pDebug,
  P2pState,
  SpaceDebug,
  SpaceSyncStatus,
} from "../protocol/sync.ts";
import type { Space } from "../space/space.ts";
import { sequencePending } from "./acl-exchange.ts";
import { type CatchUpView, createCatchUp } from "./catch-up.ts";
import { createDeviceCopy } from "./device-copy.ts";
import { createProgressBook, NETWORK_PEER, type ProgressBook } from "./progress.ts";
import { createResting } from "./resting.ts";
import {
  factsOf,
  markSynced,
  objectDebug,
  objectStatus,
  type Reach,
  type SpaceFacts,
  spaceDebug,
  spaceStatus,
} from "./status.ts";
import type { SpacePlace, Transport } from "./transport.ts";

/** What the account's spaces lend to sync. */
interface SyncSpaces {
  /** The account's own space, open all the time. */
  readonly tech: Space;
  /** Active spaces, newest first; the account's own is not among them. */
  active(): SpaceId[];
  /** Spaces that are kept in step: the active ones, and those of which the ACL log alone is here so far. */
  held(): SpaceId[];
  isHeld(spaceId: SpaceId): boolean;
  openHeld(spaceId: SpaceId): Promise<Space>;
  /** The account has no other device, and the space no other member, as far as is known here. */
  isOnlyHere(spaceId: SpaceId): boolean;
  /** An active space, opened if need be. Fails with the space resolution errors. */
  open(spaceId: string): Promise<Space>;
}

/** The LAN, as far as its state is shown. */
export interface LanView {
  state(): P2pState;
  debug(): P2pDebug;
}

export interface NetworkView {
  init(replicas?: number): Promise<{ created: string[]; existing: string[] }>;
}

export interface SyncServiceDeps {
  readonly peerId: PeerId;
  readonly spaces: SyncSpaces;
  readonly clock: Clock;
  readonly log: Log;
  /** Between rounds without a reason. */
  readonly intervalMs: number;
  /** Begins to show people how far it is with what was missed. */
  showCatchUp(): CatchUpView;
}

/** Rounds with everybody who keeps the account's spaces, and the truth about them. */
export type SyncService = ReturnType<typeof createSyncService>;

/** Rounds for a reason follow each other no faster, so that what comes together is fetched together. */
const ROUND_GAP_MS = 40;
const STATUS_MS = 50;
/**
 * Rounds that nobody asked for by name, at once. Each keeps its space open and has one request at a time with every peer, of
 * which a peer serves a bounded number.
 */
const ROUNDS_AT_ONCE = 8;
const CONVERGE_MS = 30_000;
const UNREACHED_MS = 3_000;

export function createSyncService(deps: SyncServiceDeps) {
  const { spaces, clock, log } = deps;
  const book: ProgressBook = createProgressBook();
  const catchUp = createCatchUp(book, deps.showCatchUp);
  const transports: Transport[] = [];
  let lan: LanView | undefined;
  let network: NetworkView | undefined;
  let closed = false;
  const listeners = new Set<(spaceId: SpaceId, active: ReadonlySet<SpaceId>) => void | Promise<void>>();
  const rounds = createSingleFlight();
  const inTurn = createSemaphore(ROUNDS_AT_ONCE);
  const soon = new Map<SpaceId, ReturnType<typeof setTimeout>>();
  const stale = new Set<SpaceId>();
  let statusTimer: ReturnType<typeof setTimeout> | undefined;

  const resting = createResting({ book, clock });
  const copy = createDeviceCopy({ peerId: deps.peerId, clock, log });

  const namesOf = (spaceId: SpaceId): string[] => transports.flatMap((transport) => transport.names(spaceId).slice());
  const isAlone = (spaceId: SpaceId): boolean => namesOf(spaceId).length === 0 && spaces.isOnlyHere(spaceId);

  const reachOf = (spaceId: SpaceId): Reach => {
    const names = transports.flatMap((transport) => transport.names(spaceId));
    const networkPeers = names.includes(NETWORK_PEER) ? 1 : 0;
    return {
      networkPeers,
      localPeers: names.length - networkPeers,
      p2p: lan?.state() ?? "notpossible",
      names,
      fault: transports.map((transport) => transport.fault(spaceId)).find((fault) => fault !== undefined),
    };
  };

  /** Who keeps the order of a space's ACL log, if it is reached. */
  const sequencerOf = (spaceId: SpaceId): Transport | undefined =>
    transports.find((transport) => transport.appendAcl && transport.names(spaceId).length > 0);

  const openSpace = (spaceId: SpaceId): Promise<Space> =>
    spaceId === spaces.tech.id ? Promise.resolve(spaces.tech) : spaces.openHeld(spaceId);

  /** Of spaces to which nothing happened since: they need not be opened to tell their status. */
  const factsBySpace = new Map<SpaceId, SpaceFacts>();

  const statusFrom = (spaceId: SpaceId, facts: SpaceFacts): SpaceSyncStatus =>
    spaceStatus(spaceId, facts, book.of(spaceId), reachOf(spaceId));

  const statusOf = (space: Space): SpaceSyncStatus => {
    const facts = factsOf(space);
    if (!facts.stale) factsBySpace.set(space.id, facts);
    return statusFrom(space.id, facts);
  };

  const activeStatus = async (spaceId: SpaceId): Promise<SpaceSyncStatus> => {
    const facts = factsBySpace.get(spaceId);
    return facts ? statusFrom(spaceId, facts) : statusOf(await spaces.open(spaceId));
  };

  /** The states of spaces may have changed: whoever watches is told soon, once for all that happened meanwhile. */
  const tell = (spaceId: SpaceId): void => {
    stale.add(spaceId);
    if (listeners.size === 0 || closed) return;
    statusTimer ??= setTimeout(() => {
      statusTimer = undefined;
      const active = new Set(spaces.active());
      for (const each of stale) for (const listener of [...listeners]) void listener(each, active);
      stale.clear();
    }, STATUS_MS);
  };

  /** Something happened to a space. */
  const touch = (spaceId: SpaceId): void => {
    resting.end(spaceId);
    factsBySpace.delete(spaceId);
    tell(spaceId);
  };

  const held = new Map<SpaceId, number>();
  const holding = async <T>(spaceId: SpaceId, work: () => Promise<T>): Promise<T> => {
    held.set(spaceId, (held.get(spaceId) ?? 0) + 1);
    try {
      return await work();
    } finally {
      const left = held.get(spaceId)! - 1;
      if (left > 0) held.set(spaceId, left);
      else held.delete(spaceId);
    }
  };

  const isHere = (spaceId: SpaceId): boolean => spaceId === spaces.tech.id || spaces.isHeld(spaceId);

  const oneRound = async (spaceId: SpaceId): Promise<void> => {
    if (!isHere(spaceId)) return; // ended meanwhile, or a peer shares what is only being looked for
    const space = await openSpace(spaceId);
    try {
      await Promise.all(transports.map((transport) => transport.round(space)));
    } catch (error) {
      if (!space.engine.closing()) throw error;
    }
    if (space.engine.closing()) {
      // It ended during its own round: nothing is known of it any more.
      if (!isHere(spaceId)) book.forget(spaceId);
      return;
    }
    if (!isHere(spaceId)) return; // by what the round brought, or by somebody here
    await sequencePending(space); // what came before a crash has come to nobody's notice since
    const progress = book.of(spaceId);
    progress.roundEnded = true;
    progress.lastRoundEndedMs = clock.nowMs();
    resting.end(spaceId);
    if (statusOf(space).state === "synced") {
      progress.lastSyncedMs = clock.nowMs();
      await markSynced(space.engine, progress.lastSyncedMs);
      // What was written meanwhile is not in what was found synced.
      if (statusOf(space).state === "synced") resting.begin(space);
    }
    tell(spaceId);
  };

  /** One round that begins after this call; calls during a round share the next. */
  const round = (spaceId: SpaceId): Promise<void> =>
    rounds.run(spaceId, () => catchUp.during(() => holding(spaceId, () => oneRound(spaceId))));

  /** Rounds that wait for their turn, which whoever asks for one meanwhile shares. */
  const waiting = new Map<SpaceId, Promise<void>>();
  /** A round that nobody asked for by name: it waits its turn, and its failure is told to the log. */
  const quietRound = (spaceId: SpaceId): Promise<void> => {
    const known = waiting.get(spaceId);
    if (known) return known;
    let begun = false;
    const done = inTurn(async () => {
      begun = true;
      waiting.delete(spaceId);
      try {
        if (!closed) await round(spaceId);
      } catch (error) {
        if (!closed && isHere(spaceId)) log.warn("sync: a round failed", { err: error, spaceId });
      }
    });
    if (!begun) waiting.set(spaceId, done);
    return done;
  };

  /** A round nobody waits for. */
  const roundSoon = (spaceId: SpaceId): void => {
    if (closed || transports.length === 0 || soon.has(spaceId)) return;
    const sinceMs = clock.nowMs() - (book.of(spaceId).lastRoundEndedMs ?? 0);
    const delayMs = Math.min(ROUND_GAP_MS, Math.max(0, ROUND_GAP_MS - sinceMs));
    soon.set(
      spaceId,
      setTimeout(() => {
        soon.delete(spaceId);
        void quietRound(spaceId);
      }, delayMs),
    );
  };

  /** The account's own space first, for it says which others there are; then those, newest first. */
  const roundOfAll = (): Promise<void> => catchUp.during(everyRound);
  const everyRound = async (): Promise<void> => {
    await round(spaces.tech.id);
    const known = spaces.held();
    const still = await resting.among(known, transports);
    for (const spaceId of still) tell(spaceId);
    await Promise.all(known.filter((spaceId) => !still.has(spaceId)).map(quietRound));
  };

  let timer: ReturnType<typeof setTimeout> | undefined;
  let all: Promise<void> = Promise.resolve();
  const schedule = (): void => {
    if (closed) return;
    timer = setTimeout(() => {
      all = roundOfAll()
        .catch((error: unknown) => {
          if (!closed) log.warn("sync: a round failed", { err: error });
        })
        .finally(schedule);
    }, deps.intervalMs);
  };

  return {
    book,
    /** Whether another server runs with this device's key. */
    copy,
    touch,
    stateChanged: tell,
    markOf: resting.mark,
    /** How far a space is, by the book, changed. */
    moved: catchUp.moved,
    /** Who is reached has changed. */
    reachChanged: (): void => {
      for (const spaceId of spaces.active()) tell(spaceId);
    },
    roundSoon,
    /** A space that came since the last regular round does not wait for the next. */
    firstRoundSoon(spaceId: SpaceId): void {
      if (!book.of(spaceId).roundEnded) roundSoon(spaceId);
    },
    holding,
    /** Whether work is being done with a space, which must then stay open. */
    isBusy: (spaceId: SpaceId): boolean => held.has(spaceId),
    /** All spaces, once more, without a reason to wait for the next regular round. */
    allSoon: (): void => {
      roundSoon(spaces.tech.id);
      for (const spaceId of spaces.held()) roundSoon(spaceId);
    },
    /** A way to other replicas is there. */
    addTransport(transport: Transport): void {
      transports.push(transport);
    },
    setLan: (view: LanView) => {
      lan = view;
    },
    setNetwork: (view: NetworkView) => {
      network = view;
    },
    /** Follows what is written to a space while it is open. */
    attach(space: Space): void {
      const changed = () => {
        for (const transport of transports) transport.changed(space);
        touch(space.id);
      };
      space.engine.onCommit(changed);
      space.aclService.onMoved(() => {
        changed();
        roundSoon(space.id);
      });
    },

    /**
     * The ACL log of a space that is not held here, for whoever holds a token; from its root on, unjudged. Undefined
     * when nobody who is reached has it: then it is to be tried again later.
     */
    async findChain(place: SpacePlace): Promise<Uint8Array[] | undefined> {
      const found = transports.map(
        async (transport) => (await transport.findChain(place)) ?? Promise.reject(new Error("none")),
      );
      return Promise.any(found).catch(() => undefined);
    },

    /**
     * Moves a space's ACL log: behind the last record on the network while that is reached; else at once on an
     * owner's device, and as a proposal to those on any other. Undefined when nothing had to be done. Errors: those of
     * `build`, acl.forbidden, network.unavailable.
     */
    changeAcl: (space: Space, build: AclBuild, options?: ComposeOptions): Promise<AclMade | undefined> =>
      holding(space.id, async () => {
        // A space that was opened, or ended and begun anew, a moment ago is not known to the network's transport yet.
        if (!sequencerOf(space.id) && transports.some(({ appendAcl }) => appendAcl)) await round(space.id);
        const sequencer = sequencerOf(space.id);
        if (sequencer?.appendAcl) return sequencer.appendAcl(space, build, options);
        if (space.role() === "owner") return space.aclService.act(build, options);
        const made = await space.aclService.propose(build);
        roundSoon(space.id);
        return made;
      }),

    /** The round of the boot pass; the regular ones follow. */
    async start(): Promise<void> {
      await roundOfAll();
      schedule();
    },

    /** One round that begins now, of the account's own space and this one. */
    async force(spaceId: string): Promise<void> {
      const { id } = await spaces.open(spaceId);
      if (transports.some((transport) => transport.names(spaces.tech.id).length + transport.names(id).length > 0))
        await round(spaces.tech.id);
      await round(id);
      await spaces.open(id); // it may have ended meanwhile
    },

    async status(spaceId: string): Promise<SpaceSyncStatus> {
      return statusOf(await spaces.open(spaceId));
    },
    async objectStatus(spaceId: string, objectId: string): Promise<ObjectSyncStatus> {
      const space = await spaces.open(spaceId);
      return objectStatus(space, objectId, book.of(space.id), reachOf(space.id));
    },
    async debug(spaceId: string): Promise<SpaceDebug> {
      const space = await spaces.open(spaceId);
      return spaceDebug(space, book.of(space.id), reachOf(space.id));
    },
    async objectDebug(spaceId: string, objectId: string): Promise<ObjectDebug> {
      const space = await spaces.open(spaceId);
      const object = space.engine.object(objectId);
      if (!object || object.deleted) throw svcError("object.not_found", { objectId });
      return objectDebug(space, object, book.of(space.id), reachOf(space.id));
    },
    p2pDebug(): P2pDebug {
      const deviceCopied = copy.state();
      const view = lan?.debug() ?? {
        peerId: deps.peerId,
        enabled: false,
        listenerStarted: false,
        port: 0,
        possibility: "notpossible" as const,
        state: "notpossible" as const,
        peers: [],
      };
      return deviceCopied ? { ...view, deviceCopied } : view;
    },
    async initNetwork(replicas: number | undefined): Promise<{ created: string[]; existing: string[] }> {
      if (!network) throw svcError("network.disabled");
      return network.init(replicas);
    },

    /** Tells the statuses of all active spaces, and each again when it changed. */
    async watch(told: (status: SpaceSyncStatus) => void): Promise<() => void> {
      const last = new Map<SpaceId, string>();
      const tellIfNew = async (spaceId: SpaceId): Promise<void> => {
        const status = await activeStatus(spaceId);
        const text = JSON.stringify(status);
        if (last.get(spaceId) === text || !listeners.has(listener)) return;
        last.set(spaceId, text);
        told(status);
      };
      /** A space may end before its status is read. */
      const listener = async (spaceId: SpaceId, active: ReadonlySet<SpaceId>): Promise<void> => {
        if (!active.has(spaceId)) return;
        await tellIfNew(spaceId).catch((error: unknown) => log.debug("sync: no status", { err: error, spaceId }));
      };
      listeners.add(listener);
      const active = new Set(spaces.active());
      for (const spaceId of active) await listener(spaceId, active);
      return () => void listeners.delete(listener);
    },

    /** Tells an object's status, and again when it changed. */
    async watchObject(
      spaceId: string,
      objectId: string,
      told: (status: ObjectSyncStatus) => void,
    ): Promise<() => void> {
      const { id } = await spaces.open(spaceId);
      let last = "";
      const tellIfNew = async (): Promise<void> => {
        const status = objectStatus(await spaces.open(id), objectId, book.of(id), reachOf(id));
        const text = JSON.stringify(status);
        if (text === last || !listeners.has(listener)) return;
        last = text;
        told(status);
      };
      const listener = (changed: SpaceId): void => {
        if (changed !== id) return;
        tellIfNew().catch((error: unknown) => log.debug("sync: no status", { err: error, spaceId }));
      };
      listeners.add(listener);
      try {
        await tellIfNew();
      } catch (error) {
        listeners.delete(listener);
        throw error;
      }
      return () => void listeners.delete(listener);
    },

    /**
     * Whether what others may have written to a space has come: at once where there is nobody else, else after a round
     * that missed nothing; false after 30 s, or 3 s without anybody to ask.
     */
    async waitConverged(spaceId: SpaceId): Promise<boolean> {
      if (isAlone(spaceId)) return true;
      const patienceMs = performance.now() + UNREACHED_MS;
      while (!closed && namesOf(spaceId).length === 0) {
        if (performance.now() > patienceMs) return false;
        await Bun.sleep(100);
      }
      const waited = Bun.sleep(CONVERGE_MS).then(() => false);
      const converged = round(spaceId).then(() => {
        const { peers } = book.of(spaceId);
        return namesOf(spaceId).some((name) => {
          const peer = peers.get(name);
          return peer?.lastSyncAtMs !== undefined && !peer.missing && peer.lastError === "";
        });
      });
      return Promise.race([waited, converged]);
    },
    /** Whether everything of an object is kept elsewhere and nothing of it is missing; true where there is nobody else. */
    isObjectSynced(space: Space, objectId: string): boolean {
      if (isAlone(space.id)) return true;
      return objectStatus(space, objectId, book.of(space.id), reachOf(space.id)).state === "synced";
    },

    /** Everything known of a space's rounds is forgotten: it ended. */
    async forget(spaceId: SpaceId): Promise<void> {
      book.forget(spaceId);
      resting.end(spaceId);
      factsBySpace.delete(spaceId);
      await Promise.all(transports.map((transport) => transport.forget(spaceId)));
    },

    async close(): Promise<void> {
      closed = true;
      clearTimeout(timer);
      clearTimeout(statusTimer);
      for (const each of soon.values()) clearTimeout(each);
      await Promise.all(transports.map((transport) => transport.close()));
      await all;
      await rounds.settled();
    },
  };
}
