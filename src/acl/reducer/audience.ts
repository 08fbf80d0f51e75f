import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import { canRead } from "../record/permission.ts";
import { type AclState, permissionOf } from "./state.ts";

/**
 * How many records of a log a holder of these keys may see: all if a key may read or join by itself; those up to the
 * record that ended it for an account that left or a token that ended; none for anybody else (ACL-6).
 */
export function recordsFor(state: AclState, keys: readonly Uint8Array[]): number {
  return Math.max(0, ...keys.map((key) => recordsForKey(state, key)));
}

function recordsForKey(state: AclState, key: Uint8Array): number {
  const name = bytesToHex(key);
  const isOpenInvite = (state.invites.get(name)?.permission ?? "none") !== "none";
  if (isOpenInvite || canRead(permissionOf(state, key))) return state.clocks.length;
  const left = state.members.get(name)?.history.at(-1);
  if (left) return left.pos + 1;
  // A token's key gets each new read key as long as the token is valid.
  const minted = state.usedKeys.get(name);
  if (minted === undefined) return 0;
  const wasGiven = state.epochs.some(({ epoch, shared, pos }) =>
    [...(pos >= minted ? epoch.sealed : []), ...shared].some(({ to }) => equalBytes(to, key)),
  );
  const ended = state.epochs.find(
    ({ pos, epoch }) => pos > minted && !epoch.sealed.some(({ to }) => equalBytes(to, key)),
  );
  return wasGiven && ended ? ended.pos + 1 : 0;
}
