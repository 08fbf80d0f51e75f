import { equalBytes } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { PeerId, SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { createRateLimitedLog } from "../../base/rate-limited-log.ts";
import { createSemaphore, type Semaphore } from "../../base/semaphore.ts";
import { createSingleFlight } from "../../base/single-flight.ts";
import { SvcError } from "../../protocol/errors.ts";
import type { Space } from "../../space/space.ts";
import { hasPending, mayReadSpace, pendingDigest, sequencePending } from "../acl-exchange.ts";
import type { Taken } from "../intake.ts";
import { ageWaiting } from "../patience.ts";
import type { ProgressBook } from "../progress.ts";
import { aclFrom, fetchAcl } from "../session/acl-fetch.ts";
import { SYNC_BOUNDS } from "../session/bounds.ts";
import { askState, fetchMissing, wholeState } from "../session/fetch.ts";
import {
  decodeSpaceName,
  encodeMarks,
  encodeSpaceName,
  NOT_HELD,
  SessionFault,
  type SpaceState,
} from "../session/messages.ts";
import { givesBack, givesBackRights } from "../session/proof.ts";
import { SYNC_KINDS } from "../session/remote-replica.ts";
import { fullState } from "../session/serve.ts";
import { claimedBeyond, coverage, coversAll, hasOurBodies } from "../session/vector.ts";
import type { Transport } from "../transport.ts";
import { createGuestProofs } from "./guest-proofs.ts";
import { type AnswerChunk, serveSessions } from "./lan-serve.ts";
import type { LinkManager } from "./link-manager.ts";
import type { PeerLink } from "./peer-link.ts";

/** Notice to a peer: something new of a space is here. */
const CHANGED = "sync.changed";
const BACK_TIMEOUT_MS = 60_000;
/** How often a peer is told to go on with a long transfer in one round. */
const BACK_ATTEMPTS = 1000;
const NOTICE_MS = 30;
/** How long a round waits for a peer that brings nothing; what such a peer still has to say is taken beside the round. */
const PATIENCE_MS = 15_000;
const PATIENCE_STEP_MS = 1_000;
/** Rounds with one peer at once: with those that it has with us they stay below what either serves at once. */
const ROUNDS_WITH_PEER = 8;
const ROUND_FAILED = "sync: a round with a peer failed";
/** How long devices on the LAN are given to turn up for somebody who holds a token. */
const FIND_MS = 5_000;
const FIND_STEP_MS = 100;

export interface LanSyncDeps {
  readonly links: Pick<LinkManager, "links" | "onRequest" | "onNotice">;
  readonly book: ProgressBook;
  readonly clock: Clock;
  readonly log: Log;
  /** The account's own space: for its own devices alone. */
  readonly techId: SpaceId;
  /** A space that is held here and active, or the account's own; undefined for anything else. */
  open(spaceId: string): Promise<Space | undefined>;
  /** Peers may recognise us by this key of a space from now on, until the result is called. */
  showKey(spaceId: SpaceId, key: Uint8Array): () => void;
  /** A peer has something new of a space. */
  roundSoon(spaceId: SpaceId): void;
  touch(spaceId: SpaceId): void;
  /** What a space is at that was found synced and not touched since. */
  markOf(spaceId: SpaceId): Uint8Array | undefined;
  /** The progress of a space says something else now. */
  moved(): void;
  readonly chunk: AnswerChunk;
  /** Keeps a space open while `work` runs. */
  holding<T>(spaceId: SpaceId, work: () => Promise<T>): Promise<T>;
}

/** What of the rights a peer says it has, and nobody on the LAN was known to have. */
function rightsToConfirm(space: Space, state: SpaceState) {
  const { store } = space.engine;
  const isNew = ({ id }: { readonly id: Uint8Array }): boolean => !store.sync.hasRecord("peer", id);
  const chain = store.aclRecords();
  // Whoever has a record of the chain has those before it.
  const theirs = chain.slice(0, chain.findIndex(({ id }) => equalBytes(id, state.aclHead)) + 1);
  const from = theirs.findIndex(isNew);
  const sameUnits = equalBytes(state.units, pendingDigest(space));
  const units = sameUnits ? space.acl.units.list().flatMap(({ unit }) => (isNew(unit) ? [unit] : [])) : [];
  return { from, records: from < 0 ? [] : theirs.slice(from), units };
}

/** How much somebody says it has of a space. */
const sizeOf = ({ aclCount, vector }: SpaceState): number => vector.reduce((sum, { count }) => sum + count, aclCount);

/** Whether a peer that fetches from here has more than it had. */
const hasMoved = (before: SpaceState, after: SpaceState): boolean =>
  sizeOf(after) > sizeOf(before) || !equalBytes(after.lacks, before.lacks);

/** Rounds with the devices on the LAN. All is pulled: a peer says that it has news, and is asked for them. */
export function createLanSync(deps: LanSyncDeps): Transport {
  const { links, book, clock, log } = deps;
  /** Peers that said they do not hold a space; asked again every round. */
  const withoutBySpace = new Map<SpaceId, Set<PeerId>>();
  const fetching = new Map<string, Promise<boolean>>();
  const notices = new Map<SpaceId, ReturnType<typeof setTimeout>>();
  const peerRounds = createSingleFlight();
  /** When a round with a peer that is under way brought something last. */
  const advancedAtMs = new Map<string, number>();
  const semaphoreByLink = new WeakMap<PeerLink, Semaphore>();
  /** Peers that leave a round unanswered for which patience has run out. */
  const silent = new Set<PeerLink>();
  /** Spaces of which a round with all is under way. */
  const joint = new Set<SpaceId>();
  const rateLimited = createRateLimitedLog(log);
  let closed = false;

  const shares = (link: PeerLink, spaceId: SpaceId): boolean =>
    link.own || (spaceId !== deps.techId && link.sharedSpaces().includes(spaceId));
  const sharers = (spaceId: SpaceId): PeerLink[] => links.links().filter((link) => shares(link, spaceId));
  const holders = (spaceId: SpaceId): PeerLink[] =>
    sharers(spaceId).filter((link) => !withoutBySpace.get(spaceId)?.has(link.peerId));

  const noteHolder = (spaceId: SpaceId, peerId: PeerId, holds: boolean): void => {
    const without = withoutBySpace.get(spaceId) ?? new Set();
    if (holds) without.delete(peerId);
    else without.add(peerId);
    withoutBySpace.set(spaceId, without);
  };

  /** The space, if the keys that matched say that the peer may know of it. */
  const shared = async (link: PeerLink, spaceId: string): Promise<Space | undefined> => {
    const space = await deps.open(spaceId);
    return space && shares(link, space.id) ? space : undefined;
  };
  const guests = createGuestProofs();
  const mayHaveContent = (link: PeerLink, space: Space): boolean =>
    link.own || mayReadSpace(space, link.accountId) || guests.isGuest(link, space);
  const semaphoreOf = (link: PeerLink): Semaphore => {
    const turns = semaphoreByLink.get(link) ?? createSemaphore(ROUNDS_WITH_PEER);
    semaphoreByLink.set(link, turns);
    return turns;
  };

  const roundKey = (link: PeerLink, space: Space): string => `${link.peerId} ${space.id}`;

  /** Rights first, then changes; each frame is durable before the next. True when the deadline came first. */
  const fetchFrom = (link: PeerLink, space: Space, state: SpaceState, deadlineMs?: number): Promise<boolean> => {
    const key = roundKey(link, space);
    const running = fetching.get(key);
    // Whoever comes while it runs gets what it brings, instead of the same once more.
    if (running) return running.then(() => true);
    const work = fetchAlone(link, space, state, deadlineMs).finally(() => {
      fetching.delete(key);
      advancedAtMs.delete(key);
    });
    fetching.set(key, work);
    return work;
  };

  const fetchAlone = async (link: PeerLink, space: Space, state: SpaceState, deadlineMs?: number): Promise<boolean> => {
    const progress = book.peer(space.id, link.peerId);
    const fault = await fetchAcl(link, space, state);
    if (fault) progress.lastError = fault;
    if (fault && fault !== "gap") refusedOnce(link, space, fault);
    if (!state.content) return false;
    progress.behind = claimedBeyond(space, state.vector);
    const onTaken = (taken: Taken): void => {
      if (taken.fresh + taken.changed + taken.parked > 0) advancedAtMs.set(roundKey(link, space), performance.now());
      progress.fresh += taken.fresh;
      progress.changed += taken.changed;
      progress.behind = Math.max(0, progress.behind - taken.fresh - taken.changed);
      deps.moved();
    };
    const fetched = await fetchMissing(link, space, state.vector, { deadlineMs, onTaken });
    if (fetched.reason) refusedOnce(link, space, fetched.reason);
    progress.missing = fetched.missing;
    if (!fetched.cut) progress.behind = 0;
    if (fetched.refused > 0) progress.lastError = "changes were not kept: the quota of waiting changes is used up";
    await sequencePending(space);
    if (fetched.foreignOwn) await replaceWriter(space, link.peerId);
    if (state.isPart) progress.missing = true;
    return fetched.cut || state.isPart === true;
  };

  /** Told once of each peer and space: what a peer sends is judged anew every round. */
  const refusedOnce = (link: PeerLink, space: Space, reason: string): void =>
    rateLimited.warn(`${link.accountId} ${space.id}`, "sync: what a peer sent was refused", {
      spaceId: space.id,
      peerId: link.peerId,
      accountId: link.accountId,
      reason,
    });

  const replaceWriter = async (space: Space, peerId: PeerId): Promise<void> => {
    book.of(space.id).writersReplaced++;
    log.warn(
      "sync: this device's writer was used elsewhere too: it is a copy or was put back; it writes on as another",
      {
        spaceId: space.id,
        peerId,
      },
    );
    await space.engine.mintWriter();
  };

  /** Counts what the peer keeps as kept, once it has given back some of it. */
  const confirm = async (link: PeerLink, space: Space, state: SpaceState): Promise<void> => {
    if (!state.content || !hasOurBodies(space, state)) return;
    const { store } = space.engine;
    const { sync } = store;
    const upto = sync.reachOf("peer", coverage(space, state.vector));
    const rights = rightsToConfirm(space, state);
    const given =
      (await givesBack(link, space, sync.markOf("peer"), upto)) &&
      (await givesBackRights(link, space, {
        from: rights.from,
        records: rights.records.map(({ bytes }) => bytes),
        units: rights.units.map(({ bytes }) => bytes),
      }));
    if (!given) {
      // The space may have ended there, or its content for us, between two answers.
      const now = await askState(link, space);
      if (now.known && now.content) throw new SessionFault("the peer does not give back what it claims to have");
      return noteHolder(space.id, link.peerId, now.known);
    }
    await space.engine.write(() => {
      sync.advance("peer", upto);
      for (const { id } of [...rights.records, ...rights.units]) sync.noteRecord("peer", id);
    });
  };

  /** One round with one peer: theirs here, ours there, and the proof of it. */
  const roundWith = async (link: PeerLink, space: Space): Promise<void> => {
    await guests.show(link, space);
    let state = await askState(link, space);
    noteHolder(space.id, link.peerId, state.known);
    if (!state.known) return;
    const progress = book.peer(space.id, link.peerId);
    progress.lastError = "";
    if (state.same) progress.missing = false;
    else {
      // What somebody else was fetching already is there now; what came meanwhile is asked for anew.
      let restarts = 0;
      while (await fetchFrom(link, space, state)) {
        if (++restarts > SYNC_BOUNDS.restarts) return;
        state = await askState(link, space);
      }
      let idle = 0;
      for (let asked = 0; asked < BACK_ATTEMPTS && isBehind(space, state); asked++) {
        const before = state;
        const reply = await link.request(SYNC_KINDS.back, encodeSpaceName(space.id), { timeoutMs: BACK_TIMEOUT_MS });
        state = await wholeState(link, space, reply);
        if (!state.known) return noteHolder(space.id, link.peerId, false);
        if (hasMoved(before, state)) advancedAtMs.set(roundKey(link, space), performance.now());
        await confirm(link, space, state);
        deps.touch(space.id);
        if (hasMoved(before, state)) idle = 0;
        else if (++idle >= SYNC_BOUNDS.idleBacks) break;
        if (!state.more) break;
      }
      advancedAtMs.delete(roundKey(link, space));
    }
    if (!state.content) return;
    await confirm(link, space, state);
    progress.lastSyncAtMs = clock.nowMs();
  };

  const isBehind = (space: Space, state: SpaceState): boolean =>
    (state.content && !coversAll(space, state.vector)) ||
    !equalBytes(state.aclHead, space.acl.head().id) ||
    (hasPending(pendingDigest(space)) && !equalBytes(state.units, pendingDigest(space)));

  /** One round with a peer that begins after this call, beside those with others. Its failure is noted, not thrown. */
  const peerRound = (link: PeerLink, space: Space): Promise<void> =>
    peerRounds.run(roundKey(link, space), () =>
      semaphoreOf(link)(async () => {
        // Nobody held the space open for a round that only waited for its turn.
        if (!space.engine.closing()) await deps.holding(space.id, () => notedRound(link, space));
      }),
    );

  const notedRound = async (link: PeerLink, space: Space): Promise<void> => {
    try {
      await roundWith(link, space);
    } catch (error) {
      // The peer is gone, and no longer among those that are reached; or the space is.
      if (link.signal.aborted || closed || space.engine.closing()) return;
      const reason = error instanceof Error ? error.message : String(error);
      book.peer(space.id, link.peerId).lastError = reason;
      const fields = { err: error, spaceId: space.id, peerId: link.peerId };
      if (error instanceof SessionFault) refusedOnce(link, space, reason);
      else if (error instanceof SvcError) log.debug(ROUND_FAILED, fields);
      else rateLimited.warn(`${link.accountId} ${space.id} failed`, ROUND_FAILED, fields);
    } finally {
      deps.touch(space.id);
    }
  };

  /** A peer's part of a round, for as long as it brings something: nobody waits for one that only keeps us busy. */
  const patientRound = async (link: PeerLink, space: Space): Promise<void> => {
    let ended = false;
    const work = peerRound(link, space).finally(() => {
      ended = true;
    });
    let quietSinceMs = performance.now();
    while (!ended && !closed) {
      await Promise.race([work, Bun.sleep(PATIENCE_STEP_MS)]);
      quietSinceMs = Math.max(quietSinceMs, advancedAtMs.get(roundKey(link, space)) ?? 0);
      // One that is silent already is not waited for in every other space as well.
      const patienceMs = silent.has(link) ? PATIENCE_STEP_MS : PATIENCE_MS;
      if (ended || performance.now() - quietSinceMs < patienceMs) continue;
      book.peer(space.id, link.peerId).missing = true; // until its round ends: nobody knows what it has
      silent.add(link);
      const heard = () => void silent.delete(link);
      work.then(heard, heard);
      return;
    }
  };

  const round = async (space: Space): Promise<void> => {
    joint.add(space.id);
    try {
      await Promise.all(sharers(space.id).map((link) => patientRound(link, space)));
    } finally {
      joint.delete(space.id);
    }
    if (space.engine.closing()) return;
    const someone = holders(space.id).length > 0;
    if (someone) await ageWaiting(space);
  };

  /** Takes out of `resting` the spaces of which a peer is not at the mark. */
  const ask = async (link: PeerLink, marks: [SpaceId, Uint8Array][], resting: Set<SpaceId>): Promise<void> => {
    for (let from = 0; from < marks.length; from += SYNC_BOUNDS.marks) {
      const page = marks.slice(from, from + SYNC_BOUNDS.marks);
      const same = await link.request(SYNC_KINDS.same, encodeMarks(page)).catch(() => new Uint8Array(0));
      page.forEach(([spaceId], index) => {
        if (same[index] === 1) book.peer(spaceId, link.peerId).lastSyncAtMs = clock.nowMs();
        else resting.delete(spaceId);
      });
    }
  };

  const resting: Transport["resting"] = async (marks) => {
    const found = new Set<SpaceId>();
    for (const [spaceId, mark] of marks) if (mark || sharers(spaceId).length === 0) found.add(spaceId);
    await Promise.all(
      links.links().map((link) => {
        const shared = [...marks].flatMap(([spaceId, mark]): [SpaceId, Uint8Array][] =>
          mark && shares(link, spaceId) ? [[spaceId, mark]] : [],
        );
        return ask(link, shared, found);
      }),
    );
    return found;
  };

  /** A peer asks us to fetch what it has. Answers what we are at then, and whether there is more. */
  const fetchBack = async (link: PeerLink, space: Space): Promise<SpaceState> => {
    try {
      return await fetchAll(link, space);
    } catch (error) {
      if (space.engine.closing()) return NOT_HELD;
      throw error;
    }
  };

  const fetchAll = async (link: PeerLink, space: Space): Promise<SpaceState> => {
    const deadlineMs = performance.now() + SYNC_BOUNDS.backMs;
    await guests.show(link, space);
    const state = await askState(link, space);
    if (!state.known) return fullState(space, mayHaveContent(link, space), false);
    const fetched = state.same ? false : fetchFrom(link, space, state, deadlineMs);
    const cut = await Promise.race([fetched, Bun.sleep(SYNC_BOUNDS.backMs).then(() => true)]);
    if (!cut) await confirm(link, space, state);
    deps.touch(space.id);
    return fullState(space, mayHaveContent(link, space), cut);
  };

  serveSessions({
    links,
    guests,
    shared,
    shares: (link, spaceId) => shares(link, spaceId as SpaceId),
    mayHaveContent,
    markOf: deps.markOf,
    chunk: deps.chunk,
    fetchBack: (link, space) => deps.holding(space.id, () => fetchBack(link, space)),
  });
  links.onNotice(CHANGED, async (link, body) => {
    const space = await shared(link, decodeSpaceName(body));
    if (!space) return;
    noteHolder(space.id, link.peerId, true);
    deps.roundSoon(space.id);
    // A round with all may be waiting for somebody else.
    if (joint.has(space.id)) void peerRound(link, space);
  });

  return {
    names: (spaceId) => holders(spaceId).map(({ peerId }) => peerId),
    fault: () => undefined,
    round,
    resting,
    async findChain({ spaceId, linkKey }) {
      const hide = deps.showKey(spaceId, linkKey);
      const deadline = performance.now() + FIND_MS;
      try {
        while (!closed && performance.now() < deadline) {
          for (const link of links.links()) {
            if (!link.sharedSpaces().includes(spaceId)) continue;
            const chain = await aclFrom(link, spaceId, 0);
            if (chain.length > 0) return chain;
          }
          await Bun.sleep(FIND_STEP_MS);
        }
        return undefined;
      } finally {
        hide();
      }
    },
    changed(space) {
      if (closed || notices.has(space.id) || sharers(space.id).length === 0) return;
      notices.set(
        space.id,
        setTimeout(() => {
          notices.delete(space.id);
          for (const link of sharers(space.id))
            link
              .notify(CHANGED, encodeSpaceName(space.id))
              .catch((error: unknown) => log.debug("sync: a notice was not sent", { err: error, peerId: link.peerId }));
        }, NOTICE_MS),
      );
    },
    forget: async (spaceId) => {
      withoutBySpace.delete(spaceId);
    },
    close: async () => {
      closed = true;
      for (const timer of notices.values()) clearTimeout(timer);
    },
  };
}
