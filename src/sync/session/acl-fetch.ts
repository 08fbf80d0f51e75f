import { equalBytes } from "../../base/bytes.ts";
import type { Refusal } from "../../protocol/refusals.ts";
import { ACL_RECORD_BYTES, type Replica } from "../../space/port/replica.ts";
import { SYNC_BOUNDS } from "./bounds.ts";
import {
  decodeItems,
  encodeAclRequest,
  encodeSpaceName,
  isPending,
  SessionFault,
  type WholeState,
} from "./messages.ts";
import { type RemoteReplica, SYNC_KINDS } from "./remote-replica.ts";

/** Gets the ACL records that are missing here, and the records that are pending there. Answers what was wrong with them. */
export async function fetchAcl(
  remote: RemoteReplica,
  replica: Replica,
  state: Pick<WholeState, "aclHead" | "aclCount" | "pending">,
): Promise<Refusal | undefined> {
  const { acl } = replica;
  let fault: Refusal | undefined;
  if (!acl.hasPosition(state.aclHead)) {
    const ours = acl.count();
    // Asks first for what follows our own end; from the start if the two logs have parted before it.
    if (state.aclCount > ours) fault = await acl.take(await aclFrom(remote, replica.id, ours));
    if (fault?.code === "acl.gap" || !acl.hasPosition(state.aclHead))
      fault = await acl.take(await aclFrom(remote, replica.id, 0));
  }
  if (isPending(state.pending) && !equalBytes(state.pending, acl.pendingDigest())) {
    const pending = decodeItems(await remote.request(SYNC_KINDS.pending, encodeSpaceName(replica.id)));
    await acl.takePending(pending);
  } else await acl.sequencePending();
  return fault;
}

/**
 * Records of a space's ACL log from a position to its end, as the remote has them. Throws a SessionFault if the remote
 * gives bytes that cannot be a record, gives too many at once, or takes too long.
 */
export async function aclFrom(remote: RemoteReplica, spaceId: string, from: number): Promise<Uint8Array[]> {
  const log: Uint8Array[] = [];
  const deadlineMs = performance.now() + SYNC_BOUNDS.aclMs;
  for (let cost = 0; cost < SYNC_BOUNDS.aclBytes; ) {
    const request = encodeAclRequest(spaceId, from + log.length);
    const records = decodeItems(await remote.request(SYNC_KINDS.acl, request));
    if (records.length === 0) break;
    if (records.length > SYNC_BOUNDS.aclRecords) throw new SessionFault("too many ACL records in one message");
    for (const record of records) {
      if (record.length === 0 || record.length > ACL_RECORD_BYTES)
        throw new SessionFault("an ACL record has no length that one can have");
      cost += record.length + SYNC_BOUNDS.aclRecordCost;
      log.push(record);
    }
    if (performance.now() > deadlineMs) throw new SessionFault("the peer's ACL records do not end");
  }
  return log;
}
