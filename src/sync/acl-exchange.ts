import type { AclMerge } from "../acl/acl-log.ts";
import { concatBytes, equalBytes, utf8ToBytes } from "../base/bytes.ts";
import type { AccountId } from "../base/ids.ts";
import { parseAccountId } from "../crypto/account-id.ts";
import { sha256 } from "../crypto/hash.ts";
import type { Space } from "../space/space.ts";
import { SYNC_BOUNDS } from "./session/bounds.ts";

/** Whether an account may have a space's content, as its ACL log stands here. */
export function mayReadSpace(space: Space, accountId: AccountId): boolean {
  const key = parseAccountId(accountId);
  return key !== undefined && space.acl.permission(key) !== "none";
}

/** Records of the chain from a position on, as many as go into one message. */
export function aclRecordsFrom(space: Space, from: number): Uint8Array[] {
  return within(space.engine.store.aclRecords().slice(from, from + SYNC_BOUNDS.aclRecords), ({ bytes }) => bytes);
}

/** What waits for the space's owner, as much as goes into one message. */
export const pendingRecords = (space: Space): Uint8Array[] => within(space.aclService.units(), (unit) => unit);

const NO_UNITS = new Uint8Array(32);

/** Tells apart what waits for the owner here from what waits elsewhere; zeros when nothing does. */
export function pendingDigest(space: Space): Uint8Array {
  const ids = space.acl.units.list().map(({ unit }) => unit.id);
  if (ids.length === 0) return NO_UNITS;
  return sha256(concatBytes(utf8ToBytes("svc/acl-units/v1\0"), ...ids.sort((a, b) => Buffer.compare(a, b))));
}

export const hasPending = (digest: Uint8Array): boolean => !equalBytes(digest, NO_UNITS);

/**
 * Takes in records that another replica has, each judged as one's own are. Answers why they could not be, or undefined;
 * `gap` when what they follow is not here.
 */
export async function takeAclRecords(space: Space, chain: readonly Uint8Array[]): Promise<"gap" | string | undefined> {
  return chain.length === 0 ? undefined : faultOf(await space.aclService.take(chain));
}

function faultOf({ kind, reason }: AclMerge): "gap" | string | undefined {
  if (kind === "gap") return "gap";
  return kind === "refused" || kind === "split" ? `the ACL log: ${reason ?? kind}` : undefined;
}

/**
 * Takes in records of a log that anybody may write to, each judged by itself. Answers why the first of those could not be
 * that were refused; what follows nothing that is here is passed over.
 */
export async function takeEachRecord(space: Space, records: readonly Uint8Array[]): Promise<string | undefined> {
  const faults = (await space.aclService.takeEach(records)).map(faultOf);
  return faults.find((fault) => fault !== undefined && fault !== "gap");
}

/** Keeps what others propose; an owner's device then gives effect to what waits. */
export async function takeAclUnits(space: Space, units: readonly Uint8Array[]): Promise<void> {
  if (units.length > 0) await space.aclService.takeUnits(units);
  await sequencePending(space);
}

/** On an owner's device: gives effect to what waits. To be called when records or changes have come. */
export async function sequencePending(space: Space): Promise<void> {
  if (space.role() === "owner" && space.aclService.hasWork()) await space.aclService.sequence();
}

function within<T>(items: readonly T[], bytesOf: (item: T) => Uint8Array): Uint8Array[] {
  const taken: Uint8Array[] = [];
  let size = 0;
  for (const item of items) {
    const bytes = bytesOf(item);
    size += bytes.length;
    if (size > SYNC_BOUNDS.frameBytes && taken.length > 0) break;
    taken.push(bytes);
  }
  return taken;
}
