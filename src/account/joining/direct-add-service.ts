import { SPACE_TYPE } from "../../acl/record/space-header.ts";
import type { SpaceId } from "../../base/ids.ts";
import { svcError } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import type { SpaceInfo } from "../../protocol/space.ts";
import type { SpaceRegistry } from "../life/space-registry.ts";
import type { AclSecrets } from "../own-space/acl-secrets.ts";
import { spaceStatusOf } from "../own-space/space-status.ts";
import type { TechSpace } from "../own-space/tech-space.ts";
import { spaceInfoOf } from "../rows/space-info.ts";
import type { DirectAdd } from "./space-claims.ts";

/** Spaces to which somebody added this account without asking: they wait for an answer (SPACE-5). */
export type DirectAddService = ReturnType<typeof createDirectAddService>;

export function createDirectAddService(deps: {
  tech: TechSpace;
  spaces: Pick<SpaceRegistry, "rowOf" | "isHere" | "open" | "list">;
  secrets: AclSecrets;
  /** Whether this account shares a space with another account; spaces to which such an account adds it always find room. */
  isKnown(identity: string): boolean;
}) {
  const { tech, spaces } = deps;

  /** Throws `space.not_found`, and `space.not_invite_pending` for a row that never waited for such an answer. */
  const row = (spaceId: SpaceId): JsonObject => {
    const known = spaces.rowOf(spaceId);
    if (!deps.secrets.wasAdded(spaceId) || spaceStatusOf(known) === "deleted")
      throw svcError("space.not_invite_pending", { spaceId, status: spaceStatusOf(known) });
    return known;
  };

  return {
    /**
     * Whether it can lead to anything that somebody adds this account to the space: not if the space has ended for good.
     */
    isWanted: (spaceId: SpaceId): boolean => tech.spaceRow(spaceId)?.["final"] !== true,

    /**
     * Somebody added this account: the space's ACL log says so. A space waits for an answer only if it is new here or has
     * ended. For a space that is known but never came, the place is kept. False when too many spaces of strangers wait for
     * an answer.
     */
    async register({ spaceId, adder, transportSecret, name }: DirectAdd): Promise<boolean> {
      const known = tech.spaceRow(spaceId);
      const isOver = !known || spaceStatusOf(known) === "deleted";
      if (known?.["final"] === true || spaces.isHere(spaceId)) return true;
      if (isOver && !deps.isKnown(adder) && spaces.list("invite_pending").length >= LIMITS.pendingSpaces) return false;
      await deps.secrets.keepPlace(spaceId, transportSecret, adder);
      if (!isOver && known["spaceType"] === SPACE_TYPE) return true;
      const fields = {
        ...(known?.["spaceType"] === SPACE_TYPE ? {} : { spaceType: SPACE_TYPE }),
        ...(name ? { name } : {}),
      };
      if (isOver) await tech.moveSpace(spaceId, "added", fields);
      else await tech.setSpaceRow(spaceId, fields);
      return true;
    },

    /** Accepts, also after a decline. `loaded` says whether the space is here. */
    async accept(spaceId: SpaceId): Promise<{ info: SpaceInfo; loaded: boolean }> {
      if (spaceStatusOf(row(spaceId)) !== "active") await tech.moveSpace(spaceId, "addAccepted");
      const loaded = spaces.isHere(spaceId);
      if (loaded) await spaces.open(spaceId);
      return { info: spaceInfoOf(row(spaceId)), loaded };
    },

    /** The ACL log stays as it is; accepting later overrides a decline. */
    async decline(spaceId: SpaceId): Promise<void> {
      const status = spaceStatusOf(row(spaceId));
      if (status === "active") throw svcError("space.not_invite_pending", { spaceId, status });
      if (status !== "invite_declined") await tech.moveSpace(spaceId, "addDeclined");
    },
  };
}
