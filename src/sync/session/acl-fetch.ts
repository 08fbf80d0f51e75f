import { ACL_BOUNDS } from "../../acl/op.ts";
import { equalBytes } from "../../base/bytes.ts";
import type { Space } from "../../space/space.ts";
import { hasPending, pendingDigest, sequencePending, takeAclRecords, takeAclUnits } from "../acl-exchange.ts";
import { SYNC_BOUNDS } from "./bounds.ts";
import { decodeItems, encodeAclRequest, encodeSpaceName, SessionFault, type SpaceState } from "./messages.ts";
import { type RemoteReplica, SYNC_KINDS } from "./remote-replica.ts";

/** Gets the records of rights that are not here, and what waits for the owner there. Answers what was wrong with them. */
export async function fetchAcl(remote: RemoteReplica, space: Space, state: SpaceState): Promise<string | undefined> {
  let fault: string | undefined;
  if (!space.acl.at(state.aclHead)) {
    const ours = space.acl.records().length;
    // Behind our own end first; from the start when the two have parted before it.
    fault = state.aclCount > ours ? await takeAclRecords(space, await aclFrom(remote, space.id, ours)) : "gap";
    if (fault === "gap" || !space.acl.at(state.aclHead))
      fault = await takeAclRecords(space, await aclFrom(remote, space.id, 0));
  }
  if (hasPending(state.units) && !equalBytes(state.units, pendingDigest(space))) {
    const units = decodeItems(await remote.request(SYNC_KINDS.units, encodeSpaceName(space.id)));
    await takeAclUnits(space, units);
  } else await sequencePending(space);
  return fault;
}

/**
 * Records of a space's ACL log from a position to its end, as the remote has them. Throws a SessionFault for a remote that
 * gives none that could be one, or too many at once, or takes too long.
 */
export async function aclFrom(remote: RemoteReplica, spaceId: string, from: number): Promise<Uint8Array[]> {
  const chain: Uint8Array[] = [];
  const deadlineMs = performance.now() + SYNC_BOUNDS.aclMs;
  for (let cost = 0; cost < SYNC_BOUNDS.aclBytes; ) {
    const request = encodeAclRequest(spaceId, from + chain.length);
    const records = decodeItems(await remote.request(SYNC_KINDS.acl, request));
    if (records.length === 0) break;
    if (records.length > SYNC_BOUNDS.aclRecords) throw new SessionFault("too many records of rights in one message");
    for (const record of records) {
      if (record.length === 0 || record.length > ACL_BOUNDS.recordBytes)
        throw new SessionFault("a record of rights has no length that one can have");
      cost += record.length + SYNC_BOUNDS.aclRecordCost;
      chain.push(record);
    }
    if (performance.now() > deadlineMs) throw new SessionFault("the peer's records of rights do not end");
  }
  return chain;
}
