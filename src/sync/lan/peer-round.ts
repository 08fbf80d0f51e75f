import { equalBytes } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import { createRateLimit } from "../../base/rate-limit.ts";
import type { RateLimitedLog } from "../../base/rate-limited-log.ts";
import { createSemaphore, type Semaphore } from "../../base/semaphore.ts";
import { createSingleFlight } from "../../base/single-flight.ts";
import { SvcError } from "../../protocol/errors.ts";
import type { Replica } from "../../space/port/replica.ts";
import { askState, wholeState } from "../session/ask-state.ts";
import { SYNC_BOUNDS } from "../session/bounds.ts";
import { confirm } from "../session/confirm.ts";
import { encodeSpaceName, NOT_HELD, SessionFault, type SpaceState, type WholeState } from "../session/messages.ts";
import { fullState, stateUpTo } from "../session/own-state.ts";
import { SYNC_KINDS } from "../session/remote-replica.ts";
import type { TransportHost } from "../transport.ts";
import type { LanPeers } from "./lan-peers.ts";
import type { PeerFetch } from "./peer-fetch.ts";
import type { PeerLink } from "./peer-link.ts";

const BACK_TIMEOUT_MS = 60_000;
/** How often a peer is asked to go on with a long transfer in one round. */
const BACK_ATTEMPTS = 1000;
/** How long a round waits for a peer that brings nothing. Whatever such a peer still sends is taken in beside the round. */
const PATIENCE_MS = 15_000;
const PATIENCE_STEP_MS = 1_000;
/**
 * How many rounds with one peer run at once. Together with the peer's rounds with us they stay below what either side
 * serves at once.
 */
const ROUNDS_WITH_PEER = 8;
const ROUND_FAILED = "sync: a round with a peer failed";

interface PeerRoundsDeps extends TransportHost {
  readonly peers: LanPeers;
  readonly fetch: PeerFetch;
  readonly rateLimited: RateLimitedLog;
  isClosed(): boolean;
}

/** How much a peer says it has of a space. */
const sizeOf = ({ aclCount, vector }: WholeState): number => aclCount + vector.changes();

/** Whether a peer that fetches from here has more than before. */
const hasAdvanced = (before: WholeState, after: WholeState): boolean =>
  sizeOf(after) > sizeOf(before) || !equalBytes(after.lacks, before.lacks);

const isBehind = (replica: Replica, state: WholeState): boolean =>
  (state.content && !replica.isCoveredBy(state.vector)) ||
  !equalBytes(state.aclHead, replica.acl.head()) ||
  (replica.acl.hasPending() && !equalBytes(state.pending, replica.acl.pendingDigest()));

/** Rounds with single peers, in both directions. */
export function createPeerRounds(deps: PeerRoundsDeps) {
  const { book, clock, log, timers, peers, fetch } = deps;
  const rounds = createSingleFlight();
  const semaphoreByLink = new WeakMap<PeerLink, Semaphore>();
  /** Peers that left a round unanswered until patience ran out. */
  const silent = new Set<PeerLink>();
  /** Spaces of which a round with all is under way. */
  const underWay = new Set<SpaceId>();

  const semaphoreOf = (link: PeerLink): Semaphore => {
    const semaphore = semaphoreByLink.get(link) ?? createSemaphore(ROUNDS_WITH_PEER);
    semaphoreByLink.set(link, semaphore);
    return semaphore;
  };

  /**
   * Fetches what the peer has. Answers the state that the peer is at then, or undefined if there is more than one round
   * brings.
   */
  const bringHere = async (link: PeerLink, replica: Replica, first: WholeState): Promise<WholeState | undefined> => {
    let state = first;
    // If another caller was fetching already, its changes are here now; what came meanwhile is asked for anew.
    for (let restarts = 0; await fetch.from(link, replica, state); ) {
      if (++restarts > SYNC_BOUNDS.restarts) return undefined;
      state = await askState(link, replica);
    }
    return state;
  };

  const confirmed = async (link: PeerLink, replica: Replica, state: WholeState): Promise<void> => {
    if (!peers.isHolder(replica.id, link)) return;
    if (!(await confirm(link, replica, state))) peers.noteHolder(replica, link, false);
  };

  /**
   * Brings ours there: the peer is asked to fetch, as long as that brings it something. Undefined if it no longer holds the
   * space.
   */
  const bringThere = async (link: PeerLink, replica: Replica, first: WholeState): Promise<WholeState | undefined> => {
    let state = first;
    let idle = 0;
    for (let asked = 0; asked < BACK_ATTEMPTS && isBehind(replica, state); asked++) {
      const before = state;
      const reply = await link.request(SYNC_KINDS.back, encodeSpaceName(replica.id), { timeoutMs: BACK_TIMEOUT_MS });
      state = await wholeState(link, replica, reply);
      if (!state.known) {
        peers.noteHolder(replica, link, false);
        return undefined;
      }
      const advanced = hasAdvanced(before, state);
      if (advanced) fetch.noteAdvance(link, replica.id);
      await confirmed(link, replica, state);
      deps.notifyChanged(replica.id);
      if (advanced) idle = 0;
      else if (++idle >= SYNC_BOUNDS.idleBacks) break;
      if (!state.more) break;
    }
    return state;
  };

  /** One round with one peer: fetch theirs, have ours fetched, and have that proved. */
  const roundWith = async (link: PeerLink, replica: Replica): Promise<void> => {
    await peers.proofs.show(link, replica);
    let state: WholeState | undefined = await askState(link, replica);
    peers.noteHolder(replica, link, state.known);
    if (!state.known) return;
    const progress = book.peer(replica.id, link.peerId);
    progress.lastError = "";
    if (state.same) progress.missing = false;
    else {
      state = await bringHere(link, replica, state);
      peers.noteHolder(replica, link, true); // with the ACL as it is now
      state &&= await bringThere(link, replica, state);
      if (!state) return;
      fetch.forgetAdvance(link, replica.id);
    }
    if (!state.content) return;
    await confirmed(link, replica, state);
    progress.lastSyncAtMs = clock.nowMs();
  };

  const notedRound = async (link: PeerLink, replica: Replica): Promise<void> => {
    try {
      await roundWith(link, replica);
    } catch (error) {
      // The peer is gone and no longer counts as reached, or the space is gone.
      if (link.signal.aborted || deps.isClosed() || replica.closing()) return;
      const reason = error instanceof Error ? error.message : String(error);
      book.peer(replica.id, link.peerId).lastError = reason;
      const fields = { err: error, spaceId: replica.id, peerId: link.peerId };
      if (error instanceof SessionFault) fetch.refusedOnce(link, replica, reason);
      else if (error instanceof SvcError) log.debug(ROUND_FAILED, fields);
      else deps.rateLimited.warn(`${link.accountId} ${replica.id} failed`, ROUND_FAILED, fields);
    } finally {
      deps.notifyChanged(replica.id);
    }
  };

  /** One round with a peer that begins after this call, beside those with others. Its failure is noted, not thrown. */
  const round = (link: PeerLink, replica: Replica): Promise<void> =>
    rounds.run(`${link.peerId} ${replica.id}`, () =>
      semaphoreOf(link)(async () => {
        // Nobody held the space open for a round that only waited for its turn.
        if (!replica.closing()) await deps.hold(replica.id, () => notedRound(link, replica));
      }),
    );

  /** A peer's part of a round with all, for as long as it brings something. */
  const patientRound = async (link: PeerLink, replica: Replica): Promise<void> => {
    let ended = false;
    const work = round(link, replica).finally(() => {
      ended = true;
    });
    let quietSinceMs = timers.elapsedMs();
    while (!ended && !deps.isClosed()) {
      await Promise.race([work, timers.sleep(PATIENCE_STEP_MS)]);
      quietSinceMs = Math.max(quietSinceMs, fetch.advancedAtMs(link, replica.id) ?? 0);
      // A peer that is silent already is not waited for in every other space as well.
      const patienceMs = silent.has(link) ? PATIENCE_STEP_MS : PATIENCE_MS;
      if (ended || timers.elapsedMs() - quietSinceMs < patienceMs) continue;
      book.peer(replica.id, link.peerId).missing = true; // until its round ends nobody knows what it has
      silent.add(link);
      const heard = () => void silent.delete(link);
      work.then(heard, heard);
      return;
    }
  };

  const fetchAll = async (link: PeerLink, replica: Replica): Promise<SpaceState> => {
    const deadlineMs = timers.elapsedMs() + SYNC_BOUNDS.backMs;
    await peers.proofs.show(link, replica);
    const state = await askState(link, replica);
    if (!state.known) return stateNow(link, replica, false);
    const fetched = state.same ? false : fetch.from(link, replica, state, deadlineMs);
    const cut = await Promise.race([fetched, timers.sleep(SYNC_BOUNDS.backMs).then(() => true)]);
    if (!cut) await confirmed(link, replica, state);
    deps.notifyChanged(replica.id);
    return stateNow(link, replica, cut);
  };
  const idleRequests = createRateLimit(
    { nowMs: () => timers.elapsedMs() },
    { burst: SYNC_BOUNDS.idleRequests, perSecond: 1 / 10 },
  );
  /** Until when an account's requests to fetch from it are answered without doing so, by account and space. */
  const heldOffUntilMs = new Map<string, number>();

  /** As `fetchAll`, for as long as that brings something now and then: what is known already could be offered for ever. */
  const fetchUnlessIdle = async (link: PeerLink, replica: Replica): Promise<SpaceState> => {
    const key = `${link.accountId} ${replica.id}`;
    if (timers.elapsedMs() < (heldOffUntilMs.get(key) ?? 0)) return stateNow(link, replica, false);
    const broughtSoFar = (): number => {
      const { fresh, changed } = book.peer(replica.id, link.peerId);
      return fresh + changed + replica.acl.count();
    };
    const before = broughtSoFar();
    const state = await fetchAll(link, replica);
    heldOffUntilMs.delete(key);
    const waitMs = broughtSoFar() === before ? idleRequests.take(key) : 0;
    if (waitMs > 0) heldOffUntilMs.set(key, timers.elapsedMs() + waitMs);
    return state;
  };

  const stateNow = (link: PeerLink, replica: Replica, more: boolean): SpaceState =>
    stateUpTo(replica, fullState(replica, peers.mayHaveContent(link, replica), more), peers.recordsFor(link, replica));

  return {
    /** A round with all of these peers. Nobody waits for a peer that only keeps us busy. */
    async withAll(links: readonly PeerLink[], replica: Replica): Promise<void> {
      underWay.add(replica.id);
      try {
        await Promise.all(links.map((link) => patientRound(link, replica)));
      } finally {
        underWay.delete(replica.id);
      }
    },

    /** Begins a round with a peer that has news if one with all is under way, which may be waiting for somebody else. */
    join(link: PeerLink, replica: Replica): void {
      if (underWay.has(replica.id)) void round(link, replica);
    },

    /** A peer asks us to fetch what it has. Answers the state we are at then, and whether there is more. */
    fetchBack: (link: PeerLink, replica: Replica): Promise<SpaceState> =>
      deps.hold<SpaceState>(replica.id, async () => {
        try {
          return await fetchUnlessIdle(link, replica);
        } catch (error) {
          if (replica.closing()) return NOT_HELD;
          throw error;
        }
      }),
  };
}
