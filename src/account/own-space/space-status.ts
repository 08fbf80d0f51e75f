import type { JsonObject } from "../../protocol/json.ts";
import type { SpaceInfo } from "../../protocol/space.ts";

/** Status of a space's row (SPACE-2). */
export type SpaceStatus = SpaceInfo["status"];

/** `none`: there is no row yet. */
type From = SpaceStatus | "none";

const ASKED: readonly From[] = ["one_to_one_pending", "one_to_one_declined", "invite_pending", "invite_declined"];

/** What moves the status of a space's row on this device: from where, and where to (SPACE-2). */
export const MOVES = {
  made: { from: ["none"], to: "active" },
  joinBegan: { from: ["none", ...ASKED, "guest_revoked", "deleted"], to: "joining" },
  /** The ACL log that this account came in by turned out to be older than the end of its membership before. */
  joinReopened: { from: ["active"], to: "joining" },
  /** Accepted, and here. */
  cameIn: { from: ["joining", "active"], to: "active" },
  added: { from: ["none", "deleted"], to: "invite_pending" },
  addAccepted: { from: ["invite_pending", "invite_declined", "joining", "guest_revoked"], to: "active" },
  addDeclined: { from: ["invite_pending", "joining", "guest_revoked"], to: "invite_declined" },
  /** Begun by either side, or accepted; a request that waits on this device alone has no row. */
  pairBegan: { from: ["none", ...ASKED, "joining", "guest_revoked", "deleted"], to: "active" },
  pairDeclined: {
    from: ["none", "one_to_one_pending", "invite_pending", "invite_declined", "joining", "guest_revoked"],
    to: "one_to_one_declined",
  },
  guestRevoked: { from: ["active"], to: "guest_revoked" },
  ended: { from: [...ASKED, "active", "joining", "guest_revoked"], to: "deleted" },
} as const satisfies Record<string, { readonly from: readonly From[]; readonly to: SpaceStatus }>;

export type SpaceMove = keyof typeof MOVES;

/** The status of a row; the final end of a space outweighs any status that another device wrote meanwhile. */
export function spaceStatusOf(row: JsonObject): SpaceStatus {
  return row["final"] === true ? "deleted" : ((row["status"] as SpaceStatus | undefined) ?? "active");
}

/** Where a move leads from a row as it is; undefined where it may not be made: nothing leads away from a final end. */
export function statusAfter(move: SpaceMove, row: JsonObject | undefined): SpaceStatus | undefined {
  if (row?.["final"] === true) return undefined;
  const from: readonly From[] = MOVES[move].from;
  return from.includes(row ? spaceStatusOf(row) : "none") ? MOVES[move].to : undefined;
}
