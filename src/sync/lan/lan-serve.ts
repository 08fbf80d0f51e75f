import { equalBytes } from "../../base/bytes.ts";
import type { PeerId, SpaceId } from "../../base/ids.ts";
import type { Replica } from "../../space/port/replica.ts";
import {
  decodeAclRequest,
  decodeMarks,
  decodePullRequest,
  decodeSpaceName,
  decodeStateRequest,
  decodeVectorRequest,
  decodeWants,
  encodeItems,
  encodePullReply,
  encodeState,
  encodeVectorPage,
  NOT_HELD,
  type SpaceState,
} from "../session/messages.ts";
import { stateFor, stateUpTo } from "../session/own-state.ts";
import { SYNC_KINDS } from "../session/remote-replica.ts";
import { vectorPage } from "../session/vector-parts.ts";
import { CHUNK_KIND } from "./lan-chunks.ts";
import type { LanPeers } from "./lan-peers.ts";
import type { LinkManager } from "./link-manager.ts";
import type { PeerLink } from "./peer-link.ts";

/** Answers a peer that asks for a chunk of a file; `served` says whether it may have a space's content. */
export type AnswerChunk = (
  peerId: PeerId,
  body: Uint8Array,
  served: (spaceId: string) => Promise<SpaceId | undefined>,
) => Promise<Uint8Array>;

interface LanServeDeps {
  readonly links: Pick<LinkManager, "onRequest">;
  readonly peers: LanPeers;
  /** What a space is at that was found synced and has not changed since. */
  markOf(spaceId: SpaceId): Uint8Array | undefined;
  readonly chunk: AnswerChunk;
  /** The peer asks us to fetch what it has. Answers what we are at then. */
  fetchBack(link: PeerLink, replica: Replica): Promise<SpaceState>;
}

/** Answers the requests of a session: what is here, to whom it may be given. */
export function serveSessions(deps: LanServeDeps): void {
  const { links, peers } = deps;
  const { shared, mayHaveContent } = peers;
  const served = async (link: PeerLink, spaceId: string): Promise<Replica | undefined> => {
    const replica = await shared(link, spaceId);
    return replica && mayHaveContent(link, replica) ? replica : undefined;
  };

  links.onRequest(SYNC_KINDS.state, async (link, body) => {
    const request = decodeStateRequest(body);
    const replica = await shared(link, request.space);
    if (!replica) return encodeState(NOT_HELD);
    const state = stateFor(replica, request, mayHaveContent(link, replica));
    return encodeState(stateUpTo(replica, state, peers.recordsFor(link, replica)));
  });
  links.onRequest(SYNC_KINDS.vector, async (link, body) => {
    const { space: spaceId, after, parts } = decodeVectorRequest(body);
    const replica = await served(link, spaceId);
    const nothing = { shared: new Uint8Array(0), vector: [], rest: false };
    return encodeVectorPage(replica ? vectorPage(replica.vector(), after, parts) : nothing);
  });
  links.onRequest(SYNC_KINDS.pull, async (link, body) => {
    const request = decodePullRequest(body);
    const replica = await served(link, request.space);
    return encodePullReply(replica ? replica.pull(request) : { changes: [], next: 0, withheld: 0, needIds: [] });
  });
  links.onRequest(SYNC_KINDS.wants, async (link, body) => {
    const { space: spaceId, ids } = decodeWants(body);
    const replica = await served(link, spaceId);
    return encodeItems(replica ? replica.changesNamed(ids) : []);
  });
  links.onRequest(SYNC_KINDS.acl, async (link, body) => {
    const { space: spaceId, from } = decodeAclRequest(body);
    const replica = await shared(link, spaceId);
    return encodeItems(replica ? replica.acl.recordsFrom(from, peers.recordsFor(link, replica)) : []);
  });
  links.onRequest(SYNC_KINDS.pending, async (link, body) => {
    const replica = await served(link, decodeSpaceName(body));
    return encodeItems(replica ? replica.acl.pending() : []);
  });
  links.onRequest(CHUNK_KIND, (link, body) =>
    deps.chunk(link.peerId, body, async (spaceId) => (await served(link, spaceId))?.id),
  );
  links.onRequest(SYNC_KINDS.same, async (link, body) =>
    Uint8Array.from(decodeMarks(body), ([spaceId, mark]) => {
      const own = peers.shares(link, spaceId as SpaceId) ? deps.markOf(spaceId as SpaceId) : undefined;
      return own && equalBytes(own, mark) ? 1 : 0;
    }),
  );
  links.onRequest(SYNC_KINDS.guest, async (link, body) => {
    peers.proofs.take(link, body);
    return encodeItems([]);
  });
  links.onRequest(SYNC_KINDS.back, async (link, body) => {
    const replica = await shared(link, decodeSpaceName(body));
    return encodeState(replica ? await deps.fetchBack(link, replica) : NOT_HELD);
  });
}
