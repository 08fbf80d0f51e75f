import type { Clock } from "../base/clock.ts";
import type { PeerId, SpaceId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Timers } from "../base/timers.ts";
import { svcError } from "../protocol/errors.ts";
import type { ObjectDebug, ObjectSyncStatus, P2pDebug, SpaceSyncStatus } from "../protocol/sync.ts";
import type { SpacePlace } from "../space/port/places.ts";
import type { AclBuild, AclMade, ComposeOptions, Replica } from "../space/port/replica.ts";
import { type CatchUpView, createCatchUp } from "./catch-up.ts";
import { waitConverged } from "./convergence.ts";
import { createDeviceCopy } from "./device-copy.ts";
import { createProgressBook } from "./progress.ts";
import { createReachedReplicas } from "./reached-replicas.ts";
import { createResting } from "./resting.ts";
import { createRoundScheduler } from "./round-scheduler.ts";
import { createSpaceRound } from "./space-round.ts";
import { createSpaceUses } from "./space-uses.ts";
import { objectDebug, type SyncDebug, spaceDebug } from "./status.ts";
import { createStatusWatch } from "./status-watch.ts";
import type { Transports } from "./transports.ts";

/** What the account's spaces lend to sync. */
interface SyncSpaces {
  /** The account's own space, open all the time. */
  readonly tech: Replica;
  /** Active spaces, newest first; the account's own is not among them. */
  active(): SpaceId[];
  /** Spaces that are kept in sync: the active ones, and those of which only the ACL log is here so far. */
  held(): SpaceId[];
  isHeld(spaceId: SpaceId): boolean;
  openHeld(spaceId: SpaceId): Promise<Replica>;
  /** The account has no other device, and the space no other member, as far as is known here. */
  isOnlyHere(spaceId: SpaceId): boolean;
  /** An active space, opened if need be. Fails with the space resolution errors. */
  open(spaceId: string): Promise<Replica>;
}

export interface SyncServiceDeps {
  readonly peerId: PeerId;
  readonly transports: Transports;
  readonly spaces: SyncSpaces;
  readonly clock: Clock;
  readonly log: Log;
  readonly timers: Timers;
  /** Between rounds without a reason. */
  readonly intervalMs: number;
  /** Begins to show people how far catching up has come. */
  showCatchUp(): CatchUpView;
}

/** Runs rounds with everybody who keeps the account's spaces, and says truthfully how far they are. */
export type SyncService = ReturnType<typeof createSyncService>;

export function createSyncService(deps: SyncServiceDeps) {
  const { spaces, clock, log, timers } = deps;
  const book = createProgressBook();
  const catchUp = createCatchUp(book, deps.showCatchUp);
  const reached = createReachedReplicas(deps.transports);
  const transports = deps.transports.joined;
  const resting = createResting({ book, clock });
  const copy = createDeviceCopy({ peerId: deps.peerId, clock, log });
  const uses = createSpaceUses();
  const statuses = createStatusWatch({
    ...{ book, reached, resting, log, timers },
    active: spaces.active,
    open: spaces.open,
  });
  let closed = false;

  const isHere = (spaceId: SpaceId): boolean => spaceId === spaces.tech.id || spaces.isHeld(spaceId);
  const isAlone = (spaceId: SpaceId): boolean => reached.names(spaceId).length === 0 && spaces.isOnlyHere(spaceId);
  const openHeld = (spaceId: SpaceId): Promise<Replica> =>
    spaceId === spaces.tech.id ? Promise.resolve(spaces.tech) : spaces.openHeld(spaceId);

  const committed = (replica: Replica): void => {
    for (const transport of transports) transport.changed(replica);
    statuses.changed(replica.id);
  };

  const scheduler = createRoundScheduler({
    book,
    resting,
    transports,
    clock,
    log,
    timers,
    intervalMs: deps.intervalMs,
    techId: spaces.tech.id,
    held: spaces.held,
    isHere,
    round: createSpaceRound({
      ...{ book, resting, statuses, transports, clock, isHere, openHeld },
      hold: uses.hold,
    }),
    during: catchUp.during,
    notifyStatus: statuses.notify,
  });
  const { round, soon: roundSoon } = scheduler;

  const changeAcl = async (
    replica: Replica,
    build: AclBuild,
    options?: ComposeOptions,
  ): Promise<AclMade | undefined> => {
    // The network's transport does not know yet a space that was opened, or ended and begun anew, a moment ago.
    if (!reached.sequencer(replica.id) && transports.some(({ appendAcl }) => appendAcl)) await round(replica.id);
    const sequencer = reached.sequencer(replica.id);
    if (sequencer?.appendAcl) return sequencer.appendAcl(replica, build, options);
    if (replica.role() === "owner") return replica.acl.act(build, options);
    const made = await replica.acl.propose(build);
    roundSoon(replica.id);
    return made;
  };

  return {
    name: "sync",
    book,
    /** Whether another server runs with this device's key. */
    copy,
    notifyChanged: statuses.changed,
    notifyStatus: statuses.notify,
    /** The book says something else now about how far a space is. */
    notifyProgress: catchUp.notify,
    /** Others are reached now than before. */
    notifyReach: (): void => {
      for (const spaceId of spaces.active()) statuses.notify(spaceId);
    },
    markOf: resting.mark,
    /** One round that begins now, or shares the next if one is under way. */
    round,
    roundSoon,
    allSoon: scheduler.allSoon,
    /** A space that was added since the last regular round does not wait for the next. */
    firstRoundSoon(spaceId: SpaceId): void {
      if (!book.of(spaceId).roundEnded) roundSoon(spaceId);
    },
    hold: uses.hold,
    /** Whether work is being done with a space, which must then stay open. */
    isBusy: uses.isHeld,
    /** Something was committed to an open space, here or by others. */
    committed,
    /** The ACL of an open space has changed. */
    aclChanged(replica: Replica): void {
      committed(replica);
      roundSoon(replica.id);
    },

    /**
     * The ACL log of a space that is not held here, for the holder of a token: from its root on, unjudged. Undefined when
     * nobody who is reached has it; then it is to be tried again later.
     */
    async findAclLog(place: SpacePlace): Promise<Uint8Array[] | undefined> {
      const found = transports.map(
        async (transport) => (await transport.findAclLog(place)) ?? Promise.reject(new Error("none")),
      );
      return Promise.any(found).catch(() => undefined);
    },

    /**
     * Moves a space's ACL log. While the network is reached, the record is appended there; otherwise an owner's device
     * appends it at once, and any other device keeps it as a proposal. Undefined when nothing had to be done. Errors: those
     * of `build`, acl.forbidden, network.unavailable.
     */
    changeAcl: (replica: Replica, build: AclBuild, options?: ComposeOptions): Promise<AclMade | undefined> =>
      uses.hold(replica.id, () => changeAcl(replica, build, options)),

    start: scheduler.start,
    /** The round with which it starts. Rejects as that does. */
    firstRound: scheduler.firstRound,

    /** One round that begins now, of the account's own space and this one. */
    async force(spaceId: string): Promise<void> {
      const { id } = await spaces.open(spaceId);
      if (reached.names(spaces.tech.id).length + reached.names(id).length > 0) await round(spaces.tech.id);
      await round(id);
      await spaces.open(id); // it may have ended meanwhile
    },

    async status(spaceId: string): Promise<SpaceSyncStatus> {
      return statuses.of(await spaces.open(spaceId));
    },
    async objectStatus(spaceId: string, objectId: string): Promise<ObjectSyncStatus> {
      return statuses.ofObject(await spaces.open(spaceId), objectId);
    },
    async debug(spaceId: string): Promise<SyncDebug> {
      const replica = await spaces.open(spaceId);
      return spaceDebug(replica, book.of(replica.id), reached.of(replica.id));
    },
    async objectDebug(spaceId: string, objectId: string): Promise<ObjectDebug> {
      const replica = await spaces.open(spaceId);
      const facts = replica.objectFacts(objectId);
      if (!facts) throw svcError("object.not_found", { objectId });
      return objectDebug(facts, book.of(replica.id), reached.of(replica.id));
    },
    p2pDebug(): P2pDebug {
      const deviceCopied = copy.state();
      const view = reached.lan()?.debug() ?? noLan(deps.peerId);
      return deviceCopied ? { ...view, deviceCopied } : view;
    },
    async initNetwork(replicas: number | undefined): Promise<{ created: string[]; existing: string[] }> {
      const network = transports.find((transport) => transport.init);
      if (!network?.init) throw svcError("network.disabled");
      return network.init(replicas);
    },
    watch: statuses.watch,
    watchObject: statuses.watchObject,

    /**
     * Whether what others may have written to a space has come: at once if there is nobody else, otherwise after a round
     * that missed nothing; false after 30 s, or after 3 s without anybody to ask.
     */
    waitConverged: async (spaceId: SpaceId): Promise<boolean> =>
      isAlone(spaceId) || waitConverged({ book, reached, timers, round, isClosed: () => closed }, spaceId),
    /** Whether everything of an object is kept elsewhere and nothing of it is missing; true where there is nobody else. */
    isObjectSynced: (replica: Replica, objectId: string): boolean =>
      isAlone(replica.id) || statuses.ofObject(replica, objectId).state === "synced",

    /** Forgets all that is known of a space's rounds, because the space ended. */
    async forget(spaceId: SpaceId): Promise<void> {
      book.forget(spaceId);
      statuses.forget(spaceId);
      await Promise.all(transports.map((transport) => transport.forget(spaceId)));
    },

    async stop(): Promise<void> {
      closed = true;
      scheduler.close();
      statuses.close();
      await Promise.all(transports.map((transport) => transport.close()));
      await scheduler.ended();
    },
  };
}

/** What is shown of a LAN that is not used. */
const noLan = (peerId: PeerId): P2pDebug => ({
  peerId,
  enabled: false,
  listenerStarted: false,
  port: 0,
  possibility: "notpossible",
  state: "notpossible",
  peers: [],
});
