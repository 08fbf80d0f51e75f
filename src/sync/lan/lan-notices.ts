import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Timers } from "../../base/timers.ts";
import type { Replica } from "../../space/port/replica.ts";
import { decodeSpaceName, encodeSpaceName } from "../session/messages.ts";
import type { LanPeers } from "./lan-peers.ts";
import type { LinkManager } from "./link-manager.ts";
import type { PeerLink } from "./peer-link.ts";

/** Notice to a peer: something new of a space is here. */
const CHANGED = "sync.changed";
/** What happens to a space within this time is one notice. */
const NOTICE_MS = 30;

interface LanNoticesDeps {
  readonly links: Pick<LinkManager, "onNotice">;
  readonly peers: LanPeers;
  readonly log: Log;
  readonly timers: Timers;
  /** A peer has something new of a space. */
  roundSoon(spaceId: SpaceId): void;
  /** Begins a round with this peer at once if one with all is under way. */
  joinRound(link: PeerLink, replica: Replica): void;
}

/** The notices that devices on the LAN send each other. A device that gets one asks for the news in a round. */
export function createLanNotices(deps: LanNoticesDeps) {
  const { links, peers, log, timers } = deps;
  const dueBySpace = new Map<SpaceId, () => void>();
  let closed = false;

  links.onNotice(CHANGED, async (link, body) => {
    const replica = await peers.shared(link, decodeSpaceName(body));
    if (!replica) return;
    peers.noteHolder(replica, link, true);
    deps.roundSoon(replica.id);
    deps.joinRound(link, replica);
  });

  const send = (replica: Replica): void => {
    const { id: spaceId } = replica;
    dueBySpace.delete(spaceId);
    for (const link of peers.sharers(spaceId).filter((one) => peers.isToBeNotified(one, replica)))
      link
        .notify(CHANGED, encodeSpaceName(spaceId))
        .catch((error: unknown) => log.debug("sync: a notice was not sent", { err: error, peerId: link.peerId }));
  };

  return {
    /** Something was written to the space: the peers that share it are notified soon. */
    changed(replica: Replica): void {
      if (closed || dueBySpace.has(replica.id)) return;
      dueBySpace.set(
        replica.id,
        timers.after(NOTICE_MS, () => send(replica)),
      );
    },
    /** Notices that are due are no longer sent. */
    close(): void {
      closed = true;
      for (const cancel of dueBySpace.values()) cancel();
    },
  };
}
