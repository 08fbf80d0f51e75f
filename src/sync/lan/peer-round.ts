import { equalBytes } from "../../base/bytes.ts";
import type { RateLimitedLog } from "../../base/rate-limited-log.ts";
import { createSemaphore, type Semaphore } from "../../base/semaphore.ts";
import { createSingleFlight } from "../../base/single-flight.ts";
import { SvcError } from "../../protocol/errors.ts";
import type { Space } from "../../space/space.ts";
import { hasPending, pendingDigest } from "../acl-exchange.ts";
import { SYNC_BOUNDS } from "../session/bounds.ts";
import { confirm } from "../session/confirm.ts";
import { askState, wholeState } from "../session/fetch.ts";
import { encodeSpaceName, NOT_HELD, SessionFault, type SpaceState } from "../session/messages.ts";
import { SYNC_KINDS } from "../session/remote-replica.ts";
import { fullState } from "../session/serve.ts";
import { coversAll } from "../session/vector.ts";
import type { TransportHost } from "../transport.ts";
import type { LanPeers } from "./lan-peers.ts";
import type { PeerFetch } from "./peer-fetch.ts";
import type { PeerLink } from "./peer-link.ts";

const BACK_TIMEOUT_MS = 60_000;
/** How often a peer is asked to go on with a long transfer in one round. */
const BACK_ATTEMPTS = 1000;
/** How long a round waits for a peer that brings nothing; what such a peer still has to say is taken beside the round. */
const PATIENCE_MS = 15_000;
const PATIENCE_STEP_MS = 1_000;
/** Rounds with one peer at once: with those that it has with us they stay below what either serves at once. */
const ROUNDS_WITH_PEER = 8;
const ROUND_FAILED = "sync: a round with a peer failed";

interface PeerRoundsDeps extends TransportHost {
  readonly peers: LanPeers;
  readonly fetch: PeerFetch;
  readonly rateLimited: RateLimitedLog;
  isClosed(): boolean;
}

/** How much somebody says it has of a space. */
const sizeOf = ({ aclCount, vector }: SpaceState): number => vector.reduce((sum, { count }) => sum + count, aclCount);

/** Whether a peer that fetches from here has more than it had. */
const hasAdvanced = (before: SpaceState, after: SpaceState): boolean =>
  sizeOf(after) > sizeOf(before) || !equalBytes(after.lacks, before.lacks);

const isBehind = (space: Space, state: SpaceState): boolean =>
  (state.content && !coversAll(space, state.vector)) ||
  !equalBytes(state.aclHead, space.acl.head().id) ||
  (hasPending(pendingDigest(space)) && !equalBytes(state.units, pendingDigest(space)));

/** Rounds with single peers, in both directions. */
export function createPeerRounds(deps: PeerRoundsDeps) {
  const { book, clock, log, peers, fetch } = deps;
  const rounds = createSingleFlight();
  const semaphoreByLink = new WeakMap<PeerLink, Semaphore>();
  /** Peers that leave a round unanswered for which patience has run out. */
  const silent = new Set<PeerLink>();

  const semaphoreOf = (link: PeerLink): Semaphore => {
    const semaphore = semaphoreByLink.get(link) ?? createSemaphore(ROUNDS_WITH_PEER);
    semaphoreByLink.set(link, semaphore);
    return semaphore;
  };

  /** Theirs here. The state they are at then, or undefined when there is more than one round brings. */
  const bringHere = async (link: PeerLink, space: Space, first: SpaceState): Promise<SpaceState | undefined> => {
    let state = first;
    // What somebody else was fetching already is there now; what came meanwhile is asked for anew.
    for (let restarts = 0; await fetch.from(link, space, state); ) {
      if (++restarts > SYNC_BOUNDS.restarts) return undefined;
      state = await askState(link, space);
    }
    return state;
  };

  const confirmed = async (link: PeerLink, space: Space, state: SpaceState): Promise<void> => {
    if (!(await confirm(link, space, state))) peers.noteHolder(space.id, link.peerId, false);
  };

  /** Ours there: they are asked to fetch, for as long as that brings them something. Undefined when they hold it no more. */
  const bringThere = async (link: PeerLink, space: Space, first: SpaceState): Promise<SpaceState | undefined> => {
    let state = first;
    let idle = 0;
    for (let asked = 0; asked < BACK_ATTEMPTS && isBehind(space, state); asked++) {
      const before = state;
      const reply = await link.request(SYNC_KINDS.back, encodeSpaceName(space.id), { timeoutMs: BACK_TIMEOUT_MS });
      state = await wholeState(link, space, reply);
      if (!state.known) {
        peers.noteHolder(space.id, link.peerId, false);
        return undefined;
      }
      const advanced = hasAdvanced(before, state);
      if (advanced) fetch.noteAdvance(link, space.id);
      await confirmed(link, space, state);
      deps.notifyChanged(space.id);
      if (advanced) idle = 0;
      else if (++idle >= SYNC_BOUNDS.idleBacks) break;
      if (!state.more) break;
    }
    return state;
  };

  /** One round with one peer: theirs here, ours there, and the proof of it. */
  const roundWith = async (link: PeerLink, space: Space): Promise<void> => {
    await peers.guests.show(link, space);
    let state: SpaceState | undefined = await askState(link, space);
    peers.noteHolder(space.id, link.peerId, state.known);
    if (!state.known) return;
    const progress = book.peer(space.id, link.peerId);
    progress.lastError = "";
    if (state.same) progress.missing = false;
    else {
      state = await bringHere(link, space, state);
      state &&= await bringThere(link, space, state);
      if (!state) return;
      fetch.forgetAdvance(link, space.id);
    }
    if (!state.content) return;
    await confirmed(link, space, state);
    progress.lastSyncAtMs = clock.nowMs();
  };

  const notedRound = async (link: PeerLink, space: Space): Promise<void> => {
    try {
      await roundWith(link, space);
    } catch (error) {
      // The peer is gone, and no longer among those that are reached; or the space is.
      if (link.signal.aborted || deps.isClosed() || space.engine.closing()) return;
      const reason = error instanceof Error ? error.message : String(error);
      book.peer(space.id, link.peerId).lastError = reason;
      const fields = { err: error, spaceId: space.id, peerId: link.peerId };
      if (error instanceof SessionFault) fetch.refusedOnce(link, space, reason);
      else if (error instanceof SvcError) log.debug(ROUND_FAILED, fields);
      else deps.rateLimited.warn(`${link.accountId} ${space.id} failed`, ROUND_FAILED, fields);
    } finally {
      deps.notifyChanged(space.id);
    }
  };

  /** One round with a peer that begins after this call, beside those with others. Its failure is noted, not thrown. */
  const round = (link: PeerLink, space: Space): Promise<void> =>
    rounds.run(`${link.peerId} ${space.id}`, () =>
      semaphoreOf(link)(async () => {
        // Nobody held the space open for a round that only waited for its turn.
        if (!space.engine.closing()) await deps.hold(space.id, () => notedRound(link, space));
      }),
    );

  const fetchAll = async (link: PeerLink, space: Space): Promise<SpaceState> => {
    const deadlineMs = performance.now() + SYNC_BOUNDS.backMs;
    await peers.guests.show(link, space);
    const state = await askState(link, space);
    if (!state.known) return fullState(space, peers.mayHaveContent(link, space), false);
    const fetched = state.same ? false : fetch.from(link, space, state, deadlineMs);
    const cut = await Promise.race([fetched, Bun.sleep(SYNC_BOUNDS.backMs).then(() => true)]);
    if (!cut) await confirmed(link, space, state);
    deps.notifyChanged(space.id);
    return fullState(space, peers.mayHaveContent(link, space), cut);
  };

  return {
    round,

    /** A peer's part of a round, for as long as it brings something: nobody waits for one that only keeps us busy. */
    async patientRound(link: PeerLink, space: Space): Promise<void> {
      let ended = false;
      const work = round(link, space).finally(() => {
        ended = true;
      });
      let quietSinceMs = performance.now();
      while (!ended && !deps.isClosed()) {
        await Promise.race([work, Bun.sleep(PATIENCE_STEP_MS)]);
        quietSinceMs = Math.max(quietSinceMs, fetch.advancedAtMs(link, space.id) ?? 0);
        // One that is silent already is not waited for in every other space as well.
        const patienceMs = silent.has(link) ? PATIENCE_STEP_MS : PATIENCE_MS;
        if (ended || performance.now() - quietSinceMs < patienceMs) continue;
        book.peer(space.id, link.peerId).missing = true; // until its round ends: nobody knows what it has
        silent.add(link);
        const heard = () => void silent.delete(link);
        work.then(heard, heard);
        return;
      }
    },

    /** A peer asks us to fetch what it has. Answers what we are at then, and whether there is more. */
    fetchBack: (link: PeerLink, space: Space): Promise<SpaceState> =>
      deps.hold<SpaceState>(space.id, async () => {
        try {
          return await fetchAll(link, space);
        } catch (error) {
          if (space.engine.closing()) return NOT_HELD;
          throw error;
        }
      }),
  };
}
