import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import { type Claim, changeIdOf, isStub, type Replica } from "../../space/port/replica.ts";
import { aclFrom } from "./acl-fetch.ts";
import { askState } from "./ask-state.ts";
import { decodeItems, encodeSpaceName, encodeWants, SessionFault, type WholeState } from "./messages.ts";
import { type RemoteReplica, SYNC_KINDS } from "./remote-replica.ts";

/**
 * Counts what the remote claims to keep as kept, once the remote has given some of it back. Its word alone is not enough,
 * since anybody who has heard ids can repeat them. Answers false if the remote turned out not to hold the space any more.
 * Throws a SessionFault if it does not give back what it claims to have.
 */
export async function confirm(remote: RemoteReplica, replica: Replica, state: WholeState): Promise<boolean> {
  for (let isPart = state.content; isPart; ) {
    const claim = replica.claimOf(state);
    if (!claim) return true;
    if (!(await givesBack(remote, replica, claim))) return isStillHeld(remote, replica);
    await claim.accept();
    ({ isPart } = claim);
  }
  return true;
}

/** For what it did not give back. */
async function isStillHeld(remote: RemoteReplica, replica: Replica): Promise<boolean> {
  // Between two answers the space may have ended there, or may no longer be given to us.
  const now = await askState(remote, replica);
  if (now.known && now.content) throw new SessionFault("the peer does not give back what it claims to have");
  return now.known;
}

/** Whether the remote gives back what it claims to keep. ACL records are few, so all of those are asked for. */
export async function givesBack(remote: RemoteReplica, { id: spaceId }: Replica, claim: Claim): Promise<boolean> {
  const { changeIds, from, records, pending } = claim;
  if (changeIds.length > 0) {
    const items = decodeItems(await remote.request(SYNC_KINDS.wants, encodeWants(spaceId, changeIds)));
    const given = new Set(items.filter((bytes) => !isStub(bytes)).map((bytes) => bytesToHex(changeIdOf(bytes))));
    if (!changeIds.every((id) => given.has(bytesToHex(id)))) return false;
  }
  const log = records.length > 0 ? await aclFrom(remote, spaceId, from) : [];
  if (!records.every((bytes, index) => log[index] && equalBytes(bytes, log[index]))) return false;
  if (pending.length === 0) return true;
  const given = decodeItems(await remote.request(SYNC_KINDS.pending, encodeSpaceName(spaceId)));
  return pending.every((bytes) => given.some((other) => equalBytes(bytes, other)));
}
