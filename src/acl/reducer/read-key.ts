import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import { canSealTo } from "../../crypto/box.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { EpochOp, SealedKey } from "../record/op.ts";
import type { Application } from "./application.ts";
import { currentEpoch, type MemberState, readKeyHolders } from "./state.ts";

/** Whether there is exactly one box for each expected holder and none for anybody else. */
export function sameKeys(expected: ReadonlyMap<string, Uint8Array>, sealed: readonly SealedKey[]): boolean {
  if (sealed.length !== expected.size) return false;
  const given = new Set(sealed.map(({ to }) => bytesToHex(to)));
  return given.size === sealed.length && [...given].every((name) => expected.has(name));
}

export function beginEpoch({ state, journal, pos }: Application, epoch: EpochOp): void {
  journal.push(state.epochs, { pos, epoch, shared: [] });
  journal.put(state.epochPositions, bytesToHex(epoch.keyId), pos);
}

/** Starts an epoch with a new read key, sealed to exactly those who may read, with the previous key sealed under it (ACL-6). */
export function startEpoch(app: Application, epoch: EpochOp): Refusal | undefined {
  const { state } = app;
  if (state.epochPositions.has(bytesToHex(epoch.keyId))) return refusal("acl.key_used");
  const [current] = epoch.previous;
  if (!current || !equalBytes(current.keyId, currentEpoch(state)!.epoch.keyId)) return refusal("acl.key_before");
  const previous = new Set(epoch.previous.map(({ keyId }) => bytesToHex(keyId)));
  if (previous.size !== epoch.previous.length || previous.has(bytesToHex(epoch.keyId))) return refusal("acl.key_twice");
  if (!sameKeys(readKeyHolders(state), epoch.sealed)) return refusal("acl.key_holders");
  if (!canSealTo(epoch.metadataKey)) return refusal("acl.metadata_key");
  beginEpoch(app, epoch);
  for (const member of [...state.members.values()]) if (member.status === "removing") endLeaving(app, member);
  app.owed.clear();
  app.rotationDue = false;
  return undefined;
}

/** Gives the current read key to the accounts that were admitted since the epoch began (ACL-14). */
export function giveReadKey(app: Application, keyId: Uint8Array, sealed: readonly SealedKey[]): Refusal | undefined {
  const epoch = currentEpoch(app.state)!;
  if (app.owed.size === 0) return refusal("acl.key_not_owed");
  if (!equalBytes(keyId, epoch.epoch.keyId)) return refusal("acl.key_not_current");
  if (!sameKeys(app.owed, sealed)) return refusal("acl.key_owed_holders");
  for (const entry of sealed) app.journal.push(epoch.shared, entry);
  app.owed.clear();
  return undefined;
}

/** Completes the leaving of a member who left by itself: it does not get the new key. */
function endLeaving(app: Application, member: MemberState): void {
  app.journal.put(app.state.members, bytesToHex(member.account), { ...member, status: "removed" });
}
