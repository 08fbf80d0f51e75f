import type { SpaceId } from "../../base/ids.ts";
import { createRateLimitedLog } from "../../base/rate-limited-log.ts";
import type { Replica } from "../../space/port/replica.ts";
import { NETWORK_PEER } from "../progress.ts";
import type { Transport } from "../transport.ts";
import { createAclAppender, createAclPublisher } from "./acl-publisher.ts";
import { findAcl } from "./find-acl.ts";
import { createHintFollower, type SpaceHints } from "./hint-follower.ts";
import { hasMissed, isToBeReadAgain, readFromStart } from "./log-notes.ts";
import { createLostPlaces } from "./lost-places.ts";
import type { LogStore } from "./network-store.ts";
import { createOldPlaces } from "./old-places.ts";
import { hasOutgoing } from "./outgoing-changes.ts";
import { createPlaceWalk } from "./place-walk.ts";
import { createSpaceChannels, roundAsMember, type SpaceChannel } from "./space-channels.ts";
import { createSpacePort, type SpacePortDeps } from "./space-port.ts";

const ASK_LEADER_MS = 5 * 60_000;
const FLUSH_WAIT_MS = 20_000;
const FLUSH_STEP_MS = 250;

export interface NetworkSyncDeps extends Omit<SpacePortDeps, "rateLimited" | "placesOf"> {
  readonly store: LogStore;
  /** Where others say that a space is, and to whose keys its read keys may be sealed. */
  hintsOf(spaceId: SpaceId): Promise<SpaceHints>;
  /** Secret of the invite by which this account joins the space, if it does. */
  inviteSeedOf(spaceId: SpaceId): Uint8Array | undefined;
}

/** Rounds with the network: each space is a channel that is followed and, for what it lacks, filled from here. */
export function createNetworkSync(deps: NetworkSyncDeps): Transport {
  const { store, book, clock, log, timers } = deps;
  const placesOf = (replica: Replica) => replica.places(deps.inviteSeedOf(replica.id));
  const portDeps: SpacePortDeps = { ...deps, placesOf, rateLimited: createRateLimitedLog(log) };
  const channels = createSpaceChannels({
    store,
    placesOf,
    portOf: (spaceId, ended, own) => createSpacePort(portDeps, spaceId, ended, own),
  });
  const oldPlaces = createOldPlaces({ store, channels, log });
  const { toPresent } = createPlaceWalk({
    timers,
    channels,
    acl: createAclPublisher({ placesOf, timers }),
    lookAfterOld: oldPlaces.lookAfter,
    reportLost: createLostPlaces(store),
  });
  const acl = createAclAppender({ log, toPresent, inviteSeedOf: deps.inviteSeedOf });
  let closed = false;
  const followHints = createHintFollower({ store, clock, placesOf, hintsOf: deps.hintsOf, isClosed: () => closed });
  const isOnline = (): boolean => store.state().phase === "online";

  /** Waits until what this device wrote has come back from the network, or does not go there. */
  const flush = async (replica: Replica, own: SpaceChannel): Promise<void> => {
    const deadlineMs = timers.elapsedMs() + FLUSH_WAIT_MS;
    while (!own.isPast && !own.ended.signal.aborted && timers.elapsedMs() < deadlineMs && hasOutgoing(replica)) {
      const { phase } = own.channel.state();
      if (phase === "failing" || phase === "offline") return;
      own.channel.wake();
      await Promise.race([own.changed.promise, timers.sleep(FLUSH_STEP_MS)]);
    }
  };

  const roundOf = async (replica: Replica): Promise<void> => {
    const progress = book.peer(replica.id, NETWORK_PEER);
    // Whoever was away first looks where others say that the space is by now: what it passed in between was never so.
    if (!channels.get(replica.id) || replica.role() === "none") await followHints(replica);
    if (!(await toPresent(replica))) return;
    if (replica.acl.hasPending()) await acl.publishProposals(replica);
    if (replica.role() === "none") return;
    await followHints(replica);
    const own = await toPresent(replica);
    if (!own || own.isPast) return;
    await replica.acl.forgetUnnotifiedInVain();
    if (!(await roundAsMember(replica, own, timers))) return;
    await flush(replica, own);
    const { phase, atTail } = own.channel.state();
    if (phase === "failing" || phase === "offline") return; // its own state says why
    own.leftOut = hasMissed(replica);
    progress.missing = !atTail || own.leftOut;
    progress.lastError = "";
    progress.lastSyncAtMs = clock.nowMs();
    await replica.age();
  };

  const round = async (replica: Replica): Promise<void> => {
    if (isToBeReadAgain(replica)) {
      await channels.forget(replica.id);
      await readFromStart(replica);
      await channels.readAgain(replica);
    }
    if (!isOnline()) return;
    const before = channels.get(replica.id);
    try {
      await roundOf(replica);
    } catch (error) {
      const isReplaced = before !== undefined && channels.get(replica.id) !== before;
      if (closed || isReplaced || !isOnline() || replica.closing()) return;
      book.peer(replica.id, NETWORK_PEER).lastError = error instanceof Error ? error.message : String(error);
      log.warn("sync: a round with the network failed", { err: error, spaceId: replica.id });
    }
  };

  /**
   * A live channel hears of what is appended, and of a store that is not what it was; its leader is asked all the same
   * when it was not for a while.
   */
  const rests = async (spaceId: SpaceId): Promise<boolean> => {
    const own = channels.get(spaceId);
    if (own?.channel.state().phase !== "live" || own.isPast || !oldPlaces.areLookedAfter(own)) return false;
    const { channel } = own;
    const { checkedAtMs } = channel.state();
    if (checkedAtMs === undefined || clock.nowMs() - checkedAtMs > ASK_LEADER_MS) {
      try {
        await channel.round();
      } catch {
        return false; // a full round says what is wrong
      }
    }
    const { phase, atTail, pending } = channel.state();
    if (phase !== "live" || !atTail || pending > 0) return false;
    book.peer(spaceId, NETWORK_PEER).lastSyncAtMs = channel.state().checkedAtMs;
    return true;
  };

  return {
    names: (spaceId) => {
      const phase = isOnline() ? channels.get(spaceId)?.channel.state().phase : undefined;
      return phase === undefined || phase === "offline" ? [] : [NETWORK_PEER];
    },
    fault: (spaceId) => {
      const state = store.state();
      if (state.phase === "refused") return state.reason ?? "the network refuses this account";
      const channel = isOnline() ? channels.get(spaceId)?.channel.state() : undefined;
      return channel?.phase === "failing" ? (channel.error?.message ?? "the network fails") : undefined;
    },
    round,
    async resting(marks) {
      if (!isOnline()) return new Set(marks.keys());
      const found = new Set<SpaceId>();
      for (const [spaceId, mark] of marks) if (mark && (await rests(spaceId))) found.add(spaceId);
      return found;
    },
    appendAcl: acl.append,
    findAclLog: async (place) => (isOnline() ? findAcl(store, place, () => closed) : undefined),
    changed: (replica) => channels.get(replica.id)?.channel.wake(),
    forget: channels.spaceEnded,
    async close() {
      closed = true;
      await channels.close();
      await store[Symbol.asyncDispose]();
    },
  };
}
