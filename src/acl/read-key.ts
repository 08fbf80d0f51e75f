import { bytesToHex, equalBytes } from "../base/bytes.ts";
import type { Application } from "./application.ts";
import type { EpochOp, SealedKey } from "./op.ts";
import { currentEpoch, type MemberState, readKeyHolders } from "./state.ts";

/** Whether there is one box for each of those expected, and none for anybody else. */
export function sameKeys(expected: ReadonlyMap<string, Uint8Array>, sealed: readonly SealedKey[]): boolean {
  if (sealed.length !== expected.size) return false;
  const given = new Set(sealed.map(({ to }) => bytesToHex(to)));
  return given.size === sealed.length && [...given].every((name) => expected.has(name));
}

export function beginEpoch({ state, journal, pos }: Application, epoch: EpochOp): void {
  journal.push(state.epochs, { pos, epoch, shared: [] });
  journal.put(state.epochPositions, bytesToHex(epoch.keyId), pos);
}

/** A new read key, sealed to exactly those who may read, with the one before sealed under it. */
export function startEpoch(app: Application, epoch: EpochOp): string | undefined {
  const { state } = app;
  if (state.epochPositions.has(bytesToHex(epoch.keyId))) return "the key was used before";
  const [current] = epoch.previous;
  if (!current || !equalBytes(current.keyId, currentEpoch(state)!.epoch.keyId))
    return "the key before is not sealed under the new one";
  const previous = new Set(epoch.previous.map(({ keyId }) => bytesToHex(keyId)));
  if (previous.size !== epoch.previous.length || previous.has(bytesToHex(epoch.keyId)))
    return "a key before is given twice";
  if (!sameKeys(readKeyHolders(state), epoch.sealed)) return "the new key is not sealed to exactly those who may read";
  beginEpoch(app, epoch);
  for (const member of [...state.members.values()]) if (member.status === "removing") endLeaving(app, member);
  app.owed.clear();
  app.rotationDue = false;
  return undefined;
}

/** Gives the current read key to those who came since it began. */
export function giveReadKey(app: Application, keyId: Uint8Array, sealed: readonly SealedKey[]): string | undefined {
  const epoch = currentEpoch(app.state)!;
  if (app.owed.size === 0) return "nobody is owed the key";
  if (!equalBytes(keyId, epoch.epoch.keyId)) return "the key is not the current one";
  if (!sameKeys(app.owed, sealed)) return "the key is not sealed to exactly those who are owed it";
  for (const entry of sealed) app.journal.push(epoch.shared, entry);
  app.owed.clear();
  return undefined;
}

/** Who left by itself is out for good with the key that it does not get. */
function endLeaving(app: Application, member: MemberState): void {
  app.journal.put(app.state.members, bytesToHex(member.account), { ...member, status: "removed" });
}
