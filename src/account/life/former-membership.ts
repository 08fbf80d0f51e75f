import type { AclRecord } from "../../acl/record/record.ts";
import { equalBytes } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { Space } from "../../space/space.ts";
import type { AclSecrets } from "../own-space/acl-secrets.ts";
import { ownMember } from "../rows/space-row.ts";

/** How long a log is not believed in which a membership goes on that has ended. */
const OLD_LOG_MS = 60_000;

/**
 * The record of the log with which this account's membership began, the present one or the last; undefined for one that never was a
 * member, as far as the log here goes.
 */
export function membershipBegan(space: Space): AclRecord | undefined {
  const history = ownMember(space)?.history ?? [];
  let at = history.findLastIndex(({ permission }) => permission !== "none");
  while (at > 0 && history[at - 1]!.permission !== "none") at--;
  return at < 0 ? undefined : space.acl.records()[Math.floor(history[at]!.pos)]?.record;
}

/**
 * Whether this account is a member, by more than a membership that has ended: whoever gave the log may not know that yet. After a while
 * that one is taken for what it is, as nobody may have heard of a leaving; if somebody did, the join goes on once the log says so.
 */
export function isMemberAnew(
  space: Space,
  secrets: Pick<AclSecrets, "formerOf" | "joinedAgainMs">,
  clock: Clock,
): boolean {
  if (space.role() === "none") return false;
  const former = secrets.formerOf(space.id);
  const began = former && membershipBegan(space);
  if (!former || !began || !equalBytes(former, began.id)) return true;
  return Math.abs(clock.nowMs() - secrets.joinedAgainMs(space.id)) >= OLD_LOG_MS;
}
