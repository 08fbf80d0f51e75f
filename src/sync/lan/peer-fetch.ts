import type { PeerId, SpaceId } from "../../base/ids.ts";
import type { RateLimitedLog } from "../../base/rate-limited-log.ts";
import { type Refusal, refusalText } from "../../protocol/refusals.ts";
import type { Replica, Taken } from "../../space/port/replica.ts";
import { fetchAcl } from "../session/acl-fetch.ts";
import { fetchMissing } from "../session/fetch.ts";
import type { WholeState } from "../session/messages.ts";
import type { TransportHost } from "../transport.ts";
import type { PeerLink } from "./peer-link.ts";

interface PeerFetchDeps extends Pick<TransportHost, "book" | "log" | "timers" | "notifyProgress"> {
  readonly rateLimited: RateLimitedLog;
}

const roundKey = (link: PeerLink, spaceId: SpaceId): string => `${link.peerId} ${spaceId}`;

/** Gets what peers have and we lack, one space at a time with each peer. */
export type PeerFetch = ReturnType<typeof createPeerFetch>;

export function createPeerFetch(deps: PeerFetchDeps) {
  const { book, log, timers } = deps;
  const fetching = new Map<string, Promise<boolean>>();
  /** When a round with a peer that is under way brought something last. */
  const advancedAtMs = new Map<string, number>();

  /** Logged once for each peer and space: what a peer sends is judged anew every round. */
  const refusedOnce = (link: PeerLink, replica: Replica, reason: string): void =>
    deps.rateLimited.warn(`${link.accountId} ${replica.id}`, "sync: what a peer sent was refused", {
      spaceId: replica.id,
      peerId: link.peerId,
      accountId: link.accountId,
      reason,
    });

  const replaceWriter = async (replica: Replica, peerId: PeerId): Promise<void> => {
    book.of(replica.id).writersReplaced++;
    log.warn(
      "sync: this device's writer was used elsewhere too: it is a copy or was put back; it writes on as another",
      { spaceId: replica.id, peerId },
    );
    await replica.replaceWriter();
  };

  const fetchAlone = async (
    link: PeerLink,
    replica: Replica,
    state: WholeState,
    deadlineMs?: number,
  ): Promise<boolean> => {
    const progress = book.peer(replica.id, link.peerId);
    const fault = await fetchAcl(link, replica, state);
    if (fault) progress.lastError = aclFaultText(fault);
    if (fault && fault.code !== "acl.gap") refusedOnce(link, replica, aclFaultText(fault));
    if (!state.content) return false;
    progress.behind = replica.claimedBeyond(state.vector);
    const onTaken = (taken: Taken): void => {
      if (taken.fresh + taken.changed + taken.parked > 0)
        advancedAtMs.set(roundKey(link, replica.id), timers.elapsedMs());
      progress.fresh += taken.fresh;
      progress.changed += taken.changed;
      progress.behind = Math.max(0, progress.behind - taken.fresh - taken.changed);
      deps.notifyProgress();
    };
    const fetched = await fetchMissing(link, replica, state.vector, {
      isOver: () => deadlineMs !== undefined && timers.elapsedMs() > deadlineMs,
      onTaken,
    });
    if (fetched.refusal) refusedOnce(link, replica, refusalText(fetched.refusal));
    progress.missing = fetched.missing;
    if (!fetched.brokenOff) progress.behind = 0;
    if (replica.misses(fetched)) progress.lastError = "changes were not kept: the quota of waiting changes is used up";
    await replica.acl.sequencePending();
    if (fetched.foreignOwn) await replaceWriter(replica, link.peerId);
    if (state.isPart) progress.missing = true;
    return fetched.brokenOff || state.isPart === true;
  };

  return {
    refusedOnce,
    /** ACL first, then changes; each frame is durable before the next. True when the deadline came first. */
    from(link: PeerLink, replica: Replica, state: WholeState, deadlineMs?: number): Promise<boolean> {
      const key = roundKey(link, replica.id);
      const running = fetching.get(key);
      // A caller who comes while it runs gets what it brings, instead of fetching the same again.
      if (running) return running.then(() => true);
      const work = fetchAlone(link, replica, state, deadlineMs).finally(() => {
        fetching.delete(key);
        advancedAtMs.delete(key);
      });
      fetching.set(key, work);
      return work;
    },
    /** When a round with a peer that is under way brought something last; undefined when it brought nothing yet. */
    advancedAtMs: (link: PeerLink, spaceId: SpaceId): number | undefined => advancedAtMs.get(roundKey(link, spaceId)),
    noteAdvance: (link: PeerLink, spaceId: SpaceId) =>
      void advancedAtMs.set(roundKey(link, spaceId), timers.elapsedMs()),
    forgetAdvance: (link: PeerLink, spaceId: SpaceId) => void advancedAtMs.delete(roundKey(link, spaceId)),
  };
}

const aclFaultText = (fault: Refusal): string => `the ACL log: ${refusalText(fault)}`;
