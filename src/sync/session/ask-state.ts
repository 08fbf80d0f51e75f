import { bytesToHex, concatBytes } from "../../base/bytes.ts";
import type { Replica } from "../../space/port/replica.ts";
import {
  entriesOf,
  type KeyedState,
  keyed,
  sameState,
  TheirVector,
  type VectorPart,
} from "../../space/port/version-vector.ts";
import { SYNC_BOUNDS } from "./bounds.ts";
import {
  decodeState,
  decodeVectorPage,
  encodeStateRequest,
  encodeVectorRequest,
  SessionFault,
  type WholeState,
} from "./messages.ts";
import { type RemoteReplica, SYNC_KINDS } from "./remote-replica.ts";
import { partsBehind } from "./vector-parts.ts";

/** The state of the remote. */
export async function askState(remote: RemoteReplica, replica: Replica): Promise<WholeState> {
  const { digest, parts } = replica.vector();
  const request = encodeStateRequest({
    space: replica.id,
    aclHead: replica.acl.head(),
    pending: replica.acl.pendingDigest(),
    digest,
  });
  const state = await wholeState(remote, replica, await remote.request(SYNC_KINDS.state, request));
  return state.same ? { ...state, vector: new TheirVector(parts, []) } : state;
}

/** A state with the whole of its vector. What does not fit into the state's message is asked for: the parts that differ from ours. */
export async function wholeState(remote: RemoteReplica, replica: Replica, reply: Uint8Array): Promise<WholeState> {
  const { rest, vector, ...state } = decodeState(reply);
  return { ...state, ...(rest ? await restOf(remote, replica) : { vector: new TheirVector([], vector) }) };
}

/**
 * Asks for a vector, which may take several messages. A writer of whom both have the same is not kept twice. Of writers that
 * differ a bounded number is kept; the rest is for the next session.
 */
async function restOf(remote: RemoteReplica, replica: Replica): Promise<Pick<WholeState, "vector" | "isPart">> {
  const { parts } = replica.vector();
  const entryOf = entriesOf(parts);
  let different = 0;
  const sharing = (other: KeyedState): KeyedState => {
    const own = entryOf(other.key);
    if (own && sameState(own, other)) return own;
    different++;
    return other;
  };
  const shared = new Set<VectorPart>();
  const states: KeyedState[] = [];
  const whole = () => new TheirVector([...shared], states);
  for (let after: Uint8Array = new Uint8Array(0); ; ) {
    if (different >= SYNC_BOUNDS.writersInAll) return { vector: whole(), isPart: true };
    const shown = partsBehind(parts, bytesToHex(after)).slice(0, SYNC_BOUNDS.parts);
    const hashes = shown.map(({ hash }) => hash);
    const page = decodeVectorPage(
      await remote.request(SYNC_KINDS.vector, encodeVectorRequest(replica.id, after, hashes)),
    );
    for (const [index, part] of shown.entries())
      if ((page.shared[index >> 3] ?? 0) & (1 << (index & 7))) shared.add(part);
    for (const other of page.vector) {
      const position = concatBytes(other.author, other.writer);
      if (Buffer.compare(position, after) <= 0) throw new SessionFault("the peer's vector does not go forward");
      after = position;
      states.push(sharing(keyed(other)));
    }
    if (!page.rest) return { vector: whole() };
    if (page.vector.length === 0) throw new SessionFault("the peer's vector does not end");
  }
}
