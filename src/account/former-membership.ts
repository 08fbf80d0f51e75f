import type { Space } from "../space/space.ts";
import { ownMember } from "./space-row.ts";

/**
 * Id of the record of the log with which this account's membership began, the present one or the last; undefined for one that
 * never was a member, as far as the log here goes.
 */
export function membershipBegan(space: Space): Uint8Array | undefined {
  const history = ownMember(space)?.history ?? [];
  let at = history.findLastIndex(({ permission }) => permission !== "none");
  while (at > 0 && history[at - 1]!.permission !== "none") at--;
  return at < 0 ? undefined : space.acl.records()[Math.floor(history[at]!.pos)]?.record.id;
}
