import { concatBytes } from "../../base/bytes.ts";
import type { Replica } from "../../space/replica.ts";
import { entriesOf, keyOf, sameState, type WriterState } from "../../space/version-vector.ts";
import { SYNC_BOUNDS } from "./bounds.ts";
import {
  decodeState,
  decodeVectorPage,
  encodeStateRequest,
  encodeVectorRequest,
  SessionFault,
  type SpaceState,
} from "./messages.ts";
import { type RemoteReplica, SYNC_KINDS } from "./remote-replica.ts";

/** The state of the remote: the very state that we sent if it is at the same, or else what it says. */
export async function askState(remote: RemoteReplica, replica: Replica): Promise<SpaceState> {
  const { digest, vector } = replica.vector();
  const request = encodeStateRequest({
    space: replica.id,
    aclHead: replica.acl.head(),
    pending: replica.acl.pendingDigest(),
    digest,
  });
  const state = await wholeState(remote, replica, await remote.request(SYNC_KINDS.state, request));
  return state.same ? { ...state, vector } : state;
}

/**
 * A state with the whole of its vector, which may take several messages. A writer of whom both have the same is not kept
 * twice. Of writers that differ a bounded number is kept; the rest is for the next session.
 */
export async function wholeState(remote: RemoteReplica, replica: Replica, reply: Uint8Array): Promise<SpaceState> {
  const { rest: goesOn = false, ...state } = decodeState(reply);
  if (!goesOn) return state;
  const entryOf = entriesOf(replica.vector().vector);
  let different = 0;
  const sharing = (other: WriterState): WriterState => {
    const own = entryOf(keyOf(other));
    if (own && sameState(own, other)) return own;
    different++;
    return other;
  };
  const vector = state.vector.map(sharing);
  for (let rest: boolean = goesOn; rest; ) {
    const last = vector.at(-1);
    if (!last) throw new SessionFault("a vector that goes on begins with nothing");
    if (different >= SYNC_BOUNDS.writersInAll) return { ...state, vector, isPart: true };
    const after = concatBytes(last.author, last.writer);
    const page = decodeVectorPage(await remote.request(SYNC_KINDS.vector, encodeVectorRequest(replica.id, after)));
    const next = page.vector[0];
    if (page.rest && !next) throw new SessionFault("the peer's vector does not end");
    if (next && Buffer.compare(concatBytes(next.author, next.writer), after) <= 0)
      throw new SessionFault("the peer's vector does not go forward");
    for (const other of page.vector) vector.push(sharing(other));
    rest = page.rest;
  }
  return { ...state, vector };
}
