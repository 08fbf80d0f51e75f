import { bytesToHex } from "../../base/bytes.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { Permission } from "../record/permission.ts";
import type { PendingRecord } from "../record/record.ts";
import type { AclState } from "./state.ts";

const RANK: Record<Permission, number> = { none: 0, guest: 1, reader: 2, writer: 3, admin: 4, owner: 5 };

/**
 * Why a request whose author knew the log up to the record `since` may not take effect any more: an account that it
 * concerns was since removed or given a lesser role. That decision was confirmed to its author, so an earlier request
 * must not undo it.
 */
export function superseded(state: AclState, pending: PendingRecord, since: Uint8Array): Refusal | undefined {
  const from = state.positions.get(bytesToHex(since))?.pos;
  if (from === undefined) return undefined;
  for (const op of pending.ops) {
    const lowered =
      op.op === "accountAdd" || op.op === "permissionChange"
        ? loweredSince(state, op.account, op.permission, from)
        : op.op === "inviteJoin"
          ? loweredSince(state, pending.author, "reader", from)
          : op.op === "guestKey" && guestEndedSince(state, from);
    if (lowered) return refusal("acl.superseded");
  }
  return undefined;
}

function loweredSince(state: AclState, account: Uint8Array, asked: Permission, from: number): boolean {
  const history = state.members.get(bytesToHex(account))?.history ?? [];
  return history.some(({ pos, permission }, index) => {
    const before = RANK[history[index - 1]?.permission ?? "none"];
    return pos > from && RANK[permission] < before && RANK[permission] < RANK[asked];
  });
}

function guestEndedSince(state: AclState, from: number): boolean {
  return [...state.members.values()].some(({ history }) =>
    history.some(({ pos }, index) => pos > from && history[index - 1]?.permission === "guest"),
  );
}
