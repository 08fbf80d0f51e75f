import type { SpaceId } from "../../base/ids.ts";
import { createRateLimitedLog } from "../../base/rate-limited-log.ts";
import { createSigner } from "../../crypto/sign.ts";
import type { SpacePlace } from "../../space/port/places.ts";
import type { Replica } from "../../space/port/replica.ts";
import { aclFrom } from "../session/acl-fetch.ts";
import { SYNC_BOUNDS } from "../session/bounds.ts";
import { encodeMarks } from "../session/messages.ts";
import { SYNC_KINDS } from "../session/remote-replica.ts";
import type { Transport, TransportHost } from "../transport.ts";
import { createLanNotices } from "./lan-notices.ts";
import { createLanPeers } from "./lan-peers.ts";
import { type AnswerChunk, serveSessions } from "./lan-serve.ts";
import type { LinkManager } from "./link-manager.ts";
import { createPeerFetch } from "./peer-fetch.ts";
import type { PeerLink } from "./peer-link.ts";
import { createPeerRounds } from "./peer-round.ts";

/** How long devices on the LAN are given to turn up for somebody who holds a token. */
const FIND_MS = 5_000;
const FIND_STEP_MS = 100;

export interface LanSyncDeps extends TransportHost {
  readonly links: Pick<LinkManager, "links" | "onRequest" | "onNotice">;
  /** The account's own space, which is shared with the account's own devices alone. */
  readonly techId: SpaceId;
  /** Secret of the invite by which this account joins a space, if it does. */
  inviteSeedOf(spaceId: SpaceId): Uint8Array | undefined;
  /** Peers may recognise us by this key of a space from now on, until the result is called. */
  showKey(spaceId: SpaceId, key: Uint8Array): () => void;
  /** A peer has something new of a space. */
  roundSoon(spaceId: SpaceId): void;
  /** What a space is at that was found synced and has not changed since. */
  markOf(spaceId: SpaceId): Uint8Array | undefined;
  readonly chunk: AnswerChunk;
}

/**
 * Rounds with the devices on the LAN. Changes are always pulled: a peer says that it has news, and is then asked for them.
 */
export function createLanSync(deps: LanSyncDeps): Transport {
  const { links, book, clock, log, timers } = deps;
  const rateLimited = createRateLimitedLog(log);
  let closed = false;
  const peers = createLanPeers(deps);
  const { shares, sharers } = peers;
  const fetch = createPeerFetch({ ...deps, rateLimited });
  const rounds = createPeerRounds({ ...deps, peers, fetch, rateLimited, isClosed: () => closed });

  serveSessions({ ...deps, peers, fetchBack: rounds.fetchBack });
  const notices = createLanNotices({ ...deps, peers, joinRound: rounds.join });

  const round = async (replica: Replica): Promise<void> => {
    await rounds.withAll(sharers(replica.id), replica);
    if (replica.closing()) return;
    if (peers.holders(replica.id).length > 0) await replica.age();
  };

  /** Takes out of `resting` the spaces for which a peer is not at the mark. */
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

  const findAclLog = async ({ spaceId, linkKey, seeds }: SpacePlace): Promise<Uint8Array[] | undefined> => {
    const hide = deps.showKey(spaceId, linkKey);
    const deadline = timers.elapsedMs() + FIND_MS;
    try {
      while (!closed && timers.elapsedMs() < deadline) {
        for (const link of links.links()) {
          if (!link.sharedSpaces().includes(spaceId)) continue;
          for (const seed of seeds) await peers.proofs.prove(link, spaceId, createSigner(seed));
          const records = await aclFrom(link, spaceId, 0);
          if (records.length > 0) return records;
        }
        await timers.sleep(FIND_STEP_MS);
      }
      return undefined;
    } finally {
      hide();
    }
  };

  return {
    names: (spaceId) => peers.holders(spaceId).map(({ peerId }) => peerId),
    fault: () => undefined,
    round,
    resting,
    findAclLog,
    changed: notices.changed,
    forget: async (spaceId) => peers.forget(spaceId),
    close: async () => {
      closed = true;
      notices.close();
    },
  };
}
