import { completeRemovals } from "../acl/compose/actions.ts";
import type { AclBuild } from "../acl/compose/compose.ts";
import type { AccountId, SpaceId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { IdentityDirectory } from "../domain/identity/identity-directory.ts";
import { rosterIn } from "../space/pair-profiles.ts";
import { ownCutCount } from "../space/replica/cut-changes.ts";
import type { Space } from "../space/space.ts";

/**
 * A random delay, because an owner's devices should not all complete a removal at once: the first one saves the others the work.
 */
const OWNER_SPREAD_MS = 1_000;
const ADMIN_AFTER_MS = 5_000;

interface RightsFollowerDeps {
  identities: Pick<IdentityDirectory, "setMembers" | "setProfile">;
  changeAcl(space: Space, build: AclBuild): Promise<unknown>;
  /** Whether the space is over for this account, and kept only until everybody concerned has been notified. */
  isOver(spaceId: SpaceId): boolean;
  log: Log;
}

/**
 * Reacts to changes of a space's ACL log: it updates the directory of identities, and completes the removal of members who left
 * by themselves.
 */
export function createRightsFollower(deps: RightsFollowerDeps) {
  const { identities } = deps;
  const timers = new Map<SpaceId, ReturnType<typeof setTimeout>>();
  /** What was last reported of each member, so that spaces with different knowledge do not keep overwriting each other. */
  const reportedBySpace = new Map<SpaceId, Map<AccountId, string>>();

  const inStep = (change: Promise<void>): void => {
    change.catch((err: unknown) => deps.log.error("the directory of identities was not brought in step", { err }));
  };

  const follow = (space: Space): void => {
    if (space.role() === "none" || deps.isOver(space.id)) {
      inStep(identities.setMembers(space.id, []));
      return;
    }
    const reported = reportedBySpace.get(space.id) ?? new Map<AccountId, string>();
    reportedBySpace.set(space.id, reported);
    const members = rosterIn(space).filter(({ status, permission }) => status === "active" && permission !== "guest");
    const ids = members.map(({ identity }) => identity);
    inStep(identities.setMembers(space.id, ids));
    for (const { identity, metadata } of members) {
      if (!metadata) continue;
      const { profileKey: _, ...profile } = metadata;
      const text = JSON.stringify(profile);
      if (reported.get(identity) === text) continue;
      reported.set(identity, text);
      inStep(identities.setProfile(identity, profile));
    }
  };

  /** Completes removals; only an account with the right to do so finds anything to do. */
  const completeSoon = (space: Space): void => {
    const role = space.role();
    const leaving = [...space.acl.state.members.values()].some(({ status }) => status === "removing");
    if (!leaving || timers.has(space.id) || (role !== "owner" && role !== "admin")) return;
    const wait = role === "owner" ? 0 : ADMIN_AFTER_MS;
    const complete = (): void => {
      timers.delete(space.id);
      deps
        .changeAcl(space, (context) => completeRemovals(context))
        .catch((error: unknown) =>
          deps.log.warn("completing a removal failed; it is tried again when the rights move", {
            err: error,
            spaceId: space.id,
          }),
        );
    };
    timers.set(space.id, setTimeout(complete, wait + Math.random() * OWNER_SPREAD_MS));
  };

  /** How many of this account's changes were known to be cut. */
  const cutBySpace = new Map<SpaceId, number>();
  /** Notifies an account that lost the right to write of the changes that it lost with it. */
  const notifyCut = (space: Space): void => {
    const count = ownCutCount(space);
    const before = cutBySpace.get(space.id);
    cutBySpace.set(space.id, count);
    if (before !== undefined && count > before)
      deps.log.warn(
        "changes of this account do not count: they were written after it had lost the right to; debug names them",
        { spaceId: space.id, changes: count },
      );
  };

  return {
    changed(space: Space): void {
      follow(space);
      notifyCut(space);
      completeSoon(space);
    },
    ended(spaceId: SpaceId): void {
      clearTimeout(timers.get(spaceId));
      timers.delete(spaceId);
      reportedBySpace.delete(spaceId);
      cutBySpace.delete(spaceId);
      inStep(identities.setMembers(spaceId, []));
    },
    close(): void {
      for (const timer of timers.values()) clearTimeout(timer);
    },
  };
}
