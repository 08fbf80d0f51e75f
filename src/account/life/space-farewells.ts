import { cancelRequest, leaveSpace } from "../../acl/compose/actions.ts";
import type { AclBuild } from "../../acl/compose/compose.ts";
import { pendingRequestOf } from "../../acl/reducer/state.ts";
import type { Clock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Space } from "../../space/space.ts";
import type { AccountStore } from "../../store/account-store.ts";
import { ownMember } from "../rows/space-row.ts";

/** Members who have not been heard of for so long are not waited for. */
const FAREWELL_MS = 30 * 24 * 3_600_000;

type ChangeAcl = (space: Space, build: AclBuild) => Promise<unknown>;

export type Farewells = ReturnType<typeof createFarewells>;

/**
 * Spaces that ended for this account while others have not heard of it. Their content is no longer served here, but their
 * ACL log is still kept in sync, so that those concerned learn of the leaving, the withdrawn request or the deletion (SPACE-7).
 */
export function createFarewells(deps: {
  store: Pick<AccountStore, "farewells" | "putFarewell" | "dropFarewell">;
  clock: Clock;
}) {
  const { store, clock } = deps;
  const sinceBySpace = new Map(store.farewells().map(({ spaceId, sinceMs }) => [spaceId, sinceMs]));

  const drop = (spaceId: string): void => {
    if (sinceBySpace.delete(spaceId)) store.dropFarewell(spaceId);
  };

  /** Whether everything that others must know of it was sent, or is too old. */
  const isOver = async (space: Space, sinceMs: number, changeAcl: ChangeAcl): Promise<boolean> => {
    if (clock.nowMs() - sinceMs > FAREWELL_MS) return true;
    const { state } = space.acl;
    if (state.deletedAt !== undefined) return space.store.sync.hasRecord("network", space.acl.head().id);
    if (space.acl.pending.list().some(({ pending: { author } }) => Buffer.compare(author, space.accountKey) === 0))
      return false;
    if (pendingRequestOf(state, space.accountKey)) {
      await changeAcl(space, cancelRequest);
      return pendingRequestOf(space.acl.state, space.accountKey) === undefined;
    }
    if (ownMember(space)?.status !== "active" || space.role() === "guest") return true;
    await changeAcl(space, leaveSpace);
    return ownMember(space)?.status !== "active";
  };

  const underWay = new Set<SpaceId>();
  return {
    has: (spaceId: string): boolean => sinceBySpace.has(spaceId),
    /** Durable when it resolves. */
    async begin(spaceId: SpaceId): Promise<void> {
      const sinceMs = clock.nowMs();
      await store.putFarewell(spaceId, sinceMs);
      sinceBySpace.set(spaceId, sinceMs);
    },
    drop,
    /** Sends what is still to be sent; `ended` when nothing is left. Called whenever the log has changed. */
    async goOn(space: Space, changeAcl: ChangeAcl, ended: () => Promise<void>): Promise<void> {
      const sinceMs = sinceBySpace.get(space.id);
      if (sinceMs === undefined || underWay.has(space.id)) return;
      underWay.add(space.id);
      try {
        if (!(await isOver(space, sinceMs, changeAcl)) || !sinceBySpace.has(space.id)) return;
        drop(space.id);
        await ended();
      } finally {
        underWay.delete(space.id);
      }
    },
  };
}
