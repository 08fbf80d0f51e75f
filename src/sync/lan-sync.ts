import { equalBytes } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import type { PeerId, SpaceId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { SvcError } from "../protocol/errors.ts";
import type { Space } from "../space/space.ts";
import { inviteLinkKeyOf } from "../space/space-keys.ts";
import { aclRecordsFrom, aclUnits, hasUnits, mayReadSpace, sequenceUnits, unitsDigest } from "./acl-exchange.ts";
import type { Carrier } from "./carrier.ts";
import type { Taken } from "./intake.ts";
import type { LinkManager } from "./link/link-manager.ts";
import type { PeerLink } from "./link/peer-link.ts";
import type { ProgressBook } from "./progress.ts";
import { SYNC_BOUNDS } from "./session/bounds.ts";
import { aclFrom, askState, fetchAcl, fetchMissing, SYNC_KINDS } from "./session/fetch.ts";
import {
  decodeAclRequest,
  decodePullRequest,
  decodeSpaceName,
  decodeState,
  decodeStateRequest,
  decodeWants,
  encodeItems,
  encodePullReply,
  encodeSpaceName,
  encodeState,
  NOT_HELD,
  type SpaceState,
} from "./session/messages.ts";
import { fullState, pullFrame, stateFor, wanted } from "./session/serve.ts";
import { claimedBeyond, coverage, coversAll } from "./session/vector.ts";

/** Notice to a peer: something new of a space is here. */
const CHANGED = "sync.changed";
const BACK_TIMEOUT_MS = 60_000;
/** How often a peer is told to go on with a long transfer in one round. */
const BACK_ATTEMPTS = 1000;
const NOTICE_MS = 30;
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
  /** The progress of a space says something else now. */
  moved(): void;
  /** Keeps a space open while `work` runs. */
  holding<T>(spaceId: SpaceId, work: () => Promise<T>): Promise<T>;
}

/** Rounds with the devices on the LAN. All is pulled: a peer says that it has news, and is asked for them. */
export function createLanSync(deps: LanSyncDeps): Carrier {
  const { links, book, clock, log } = deps;
  /** Peers that said they do not hold a space; asked again every round. */
  const withoutBySpace = new Map<SpaceId, Set<PeerId>>();
  const fetching = new Map<string, Promise<boolean>>();
  const notices = new Map<SpaceId, ReturnType<typeof setTimeout>>();
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
  const mayHaveContent = (link: PeerLink, space: Space): boolean => link.own || mayReadSpace(space, link.accountId);
  /** The same, if the chain of rights gives it the content too. */
  const served = async (link: PeerLink, spaceId: string): Promise<Space | undefined> => {
    const space = await shared(link, spaceId);
    return space && mayHaveContent(link, space) ? space : undefined;
  };

  /** Rights first, then changes; each frame is durable before the next. True when the deadline came first. */
  const fetchFrom = (link: PeerLink, space: Space, state: SpaceState, deadlineMs?: number): Promise<boolean> => {
    const key = `${link.peerId} ${space.id}`;
    const running = fetching.get(key);
    // Whoever comes while it runs gets what it brings, instead of the same once more.
    if (running) return running.then(() => true);
    const work = fetchAlone(link, space, state, deadlineMs).finally(() => fetching.delete(key));
    fetching.set(key, work);
    return work;
  };

  const fetchAlone = async (link: PeerLink, space: Space, state: SpaceState, deadlineMs?: number): Promise<boolean> => {
    const progress = book.peer(space.id, link.peerId);
    const fault = await fetchAcl(link, space, state);
    if (fault) progress.lastError = fault;
    if (!state.content) return false;
    progress.behind = claimedBeyond(space.engine.store, state.vector);
    const onTaken = (taken: Taken): void => {
      progress.fresh += taken.fresh;
      progress.changed += taken.changed;
      progress.behind = claimedBeyond(space.engine.store, state.vector);
      deps.moved();
    };
    const fetched = await fetchMissing(link, space, state.vector, { deadlineMs, onTaken });
    progress.missing = fetched.missing;
    if (!fetched.cut) progress.behind = 0;
    if (fetched.refused > 0) progress.lastError = "changes were not kept: the quota of waiting changes is used up";
    await sequenceUnits(space);
    if (fetched.foreignOwn) await replaceWriter(space, link.peerId);
    return fetched.cut;
  };

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

  const confirm = async (space: Space, state: SpaceState): Promise<void> => {
    if (!state.content) return;
    const { sync } = space.engine.store;
    const covers = coverage(space.engine.store, state.vector);
    await space.engine.write(() => sync.advance("peer", covers));
  };

  /** One round with one peer: theirs here, ours there, and the proof of it. */
  const roundWith = async (link: PeerLink, space: Space): Promise<void> => {
    let state = await askState(link, space);
    noteHolder(space.id, link.peerId, state.known);
    if (!state.known) return;
    const progress = book.peer(space.id, link.peerId);
    progress.lastError = "";
    if (state.same) progress.missing = false;
    else {
      // What somebody else was fetching already is there now; what came meanwhile is asked for anew.
      while (await fetchFrom(link, space, state)) state = await askState(link, space);
      for (let asked = 0; asked < BACK_ATTEMPTS && isBehind(space, state); asked++) {
        const reply = await link.request(SYNC_KINDS.back, encodeSpaceName(space.id), { timeoutMs: BACK_TIMEOUT_MS });
        state = decodeState(reply);
        if (!state.known) return noteHolder(space.id, link.peerId, false);
        await confirm(space, state);
        deps.touch(space.id);
        if (!state.more) break;
      }
    }
    if (!state.content) return;
    await confirm(space, state);
    progress.lastSyncAtMs = clock.nowMs();
  };

  const isBehind = (space: Space, state: SpaceState): boolean =>
    (state.content && !coversAll(space.engine.store, state.vector)) ||
    !equalBytes(state.aclHead, space.acl.head().id) ||
    (hasUnits(unitsDigest(space)) && !equalBytes(state.units, unitsDigest(space)));

  const round = async (space: Space): Promise<void> => {
    await Promise.all(
      sharers(space.id).map(async (link) => {
        try {
          await roundWith(link, space);
        } catch (error) {
          if (link.signal.aborted || closed) return; // gone: no longer among those that are reached
          book.peer(space.id, link.peerId).lastError = error instanceof Error ? error.message : String(error);
          const known = error instanceof SvcError;
          log[known ? "debug" : "warn"]("sync: a round with a peer failed", {
            err: error,
            spaceId: space.id,
            peerId: link.peerId,
          });
        }
      }),
    );
    const someone = holders(space.id).length > 0;
    if (someone && space.engine.store.parked.usage().count > 0)
      await space.engine.write(() => space.engine.store.parked.ageAll());
  };

  /** A peer asks us to fetch what it has. Answers what we are at then, and whether there is more. */
  const fetchBack = async (link: PeerLink, space: Space): Promise<SpaceState> => {
    const deadlineMs = performance.now() + SYNC_BOUNDS.backMs;
    const state = await askState(link, space);
    if (!state.known) return fullState(space, mayHaveContent(link, space), false);
    const fetched = state.same ? false : fetchFrom(link, space, state, deadlineMs);
    const cut = await Promise.race([fetched, Bun.sleep(SYNC_BOUNDS.backMs).then(() => true)]);
    if (!cut) await confirm(space, state);
    deps.touch(space.id);
    return fullState(space, mayHaveContent(link, space), cut);
  };

  links.onRequest(SYNC_KINDS.state, async (link, body) => {
    const request = decodeStateRequest(body);
    const space = await shared(link, request.space);
    return encodeState(space ? stateFor(space, request, mayHaveContent(link, space)) : NOT_HELD);
  });
  links.onRequest(SYNC_KINDS.pull, async (link, body) => {
    const request = decodePullRequest(body);
    const space = await served(link, request.space);
    return encodePullReply(space ? pullFrame(space, request) : { changes: [], next: 0, withheld: 0, needIds: [] });
  });
  links.onRequest(SYNC_KINDS.wants, async (link, body) => {
    const { space: spaceId, ids } = decodeWants(body);
    const space = await served(link, spaceId);
    return encodeItems(space ? wanted(space.engine.store, ids) : []);
  });
  links.onRequest(SYNC_KINDS.acl, async (link, body) => {
    const { space: spaceId, from } = decodeAclRequest(body);
    const space = await shared(link, spaceId);
    return encodeItems(space ? aclRecordsFrom(space, from) : []);
  });
  links.onRequest(SYNC_KINDS.units, async (link, body) => {
    const space = await shared(link, decodeSpaceName(body));
    return encodeItems(space ? aclUnits(space) : []);
  });
  links.onRequest(SYNC_KINDS.back, async (link, body) => {
    const space = await shared(link, decodeSpaceName(body));
    return encodeState(space ? await deps.holding(space.id, () => fetchBack(link, space)) : NOT_HELD);
  });
  links.onNotice(CHANGED, async (link, body) => {
    const space = await shared(link, decodeSpaceName(body));
    if (!space) return;
    noteHolder(space.id, link.peerId, true);
    deps.roundSoon(space.id);
  });

  return {
    names: (spaceId) => holders(spaceId).map(({ peerId }) => peerId),
    fault: () => undefined,
    round,
    async findChain({ spaceId, transportSecret, inviteKey }) {
      const hide = deps.showKey(spaceId, inviteLinkKeyOf(spaceId, transportSecret, inviteKey));
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
