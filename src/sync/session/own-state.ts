import { equalBytes } from "../../base/bytes.ts";
import type { Replica } from "../../space/port/replica.ts";
import { LACKS_NOTHING, statesIn } from "../../space/port/version-vector.ts";
import { SYNC_BOUNDS } from "./bounds.ts";
import { NOT_HELD, type SpaceState, type StateRequest } from "./messages.ts";

const NOTHING_PENDING = new Uint8Array(32);

/** The state of our replica, in short if the other is at the same. Without `content` it is that of the ACL log alone. */
export function stateFor(replica: Replica, request: StateRequest, content: boolean): SpaceState {
  const full = fullState(replica, content, false);
  const same =
    content &&
    equalBytes(replica.vector().digest, request.digest) &&
    equalBytes(full.aclHead, request.aclHead) &&
    equalBytes(full.pending, request.pending);
  return same ? { ...full, same, vector: [], rest: false } : full;
}

/** The same for a peer that may have only so many records of the ACL log; with none of them the space is not known here. */
export function stateUpTo(replica: Replica, state: SpaceState, records: number): SpaceState {
  if (!state.known || records >= state.aclCount) return state;
  const aclHead = replica.acl.idAt(records - 1);
  return aclHead ? { ...state, aclHead, aclCount: records, pending: NOTHING_PENDING } : NOT_HELD;
}

/** As much of it as fits into a message. */
export function fullState(replica: Replica, content: boolean, more: boolean): SpaceState {
  return {
    known: true,
    same: false,
    more,
    aclHead: replica.acl.head(),
    aclCount: replica.acl.count(),
    pending: replica.acl.pendingDigest(),
    content,
    ...(content ? lackingAndVector(replica) : { lacks: LACKS_NOTHING, vector: [] }),
  };
}

/** A vector that does not fit into the message is to be asked for. */
function lackingAndVector(replica: Replica): Pick<SpaceState, "lacks" | "vector" | "rest"> {
  const { lacks, parts, writers } = replica.vector();
  return writers > SYNC_BOUNDS.writers ? { lacks, vector: [], rest: true } : { lacks, vector: statesIn(parts) };
}
