import { SPACE_TYPE } from "../acl/space-header.ts";
import type { AccountId, SpaceId } from "../base/ids.ts";
import { svcError } from "../protocol/errors.ts";
import type { JsonObject } from "../protocol/json.ts";
import { LIMITS } from "../protocol/limits.ts";
import type { SpaceInfo } from "../protocol/space.ts";
import type { AclSecrets } from "./acl-secrets.ts";
import { spaceInfoOf, spaceStatusOf } from "./space-info.ts";
import type { SpaceRegistry } from "./space-registry.ts";
import { SPACES_RULES } from "./tech-datasets.ts";
import type { TechSpace } from "./tech-space.ts";

/** What an account that was added to a space is told of it, in a message only it can read. */
export interface DirectAdd {
  spaceId: SpaceId;
  /** Who says so. */
  adder: AccountId;
  /** Of the space's channel on the network. */
  transportSecret: Uint8Array;
  name?: string;
}

/** Spaces to which somebody added this account without asking: they wait for an answer (SPACE-5). */
export type DirectAddService = ReturnType<typeof createDirectAddService>;

export function createDirectAddService(deps: {
  tech: TechSpace;
  spaces: Pick<SpaceRegistry, "rowOf" | "isHere" | "open" | "list">;
  secrets: AclSecrets;
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
    /** Somebody added this account. Only what is new here, or has ended, waits for an answer. */
    async register({ spaceId, adder, transportSecret, name }: DirectAdd): Promise<void> {
      const known = tech.spaceRow(spaceId);
      if (known && (known["final"] === true || spaceStatusOf(known) !== "deleted")) return;
      if (spaces.list("invite_pending").length >= LIMITS.pendingSpaces) return;
      await deps.secrets.keepPlace(spaceId, transportSecret, adder);
      await tech.set(SPACES_RULES, spaceId, {
        status: "invite_pending",
        ...(known?.["spaceType"] ? {} : { spaceType: SPACE_TYPE }),
        ...(name ? { name } : {}),
      });
    },

    /** Accepts, also after a decline. `loaded` says whether the space is here. */
    async accept(spaceId: SpaceId): Promise<{ info: SpaceInfo; loaded: boolean }> {
      if (spaceStatusOf(row(spaceId)) !== "active") await tech.set(SPACES_RULES, spaceId, { status: "active" });
      const loaded = spaces.isHere(spaceId);
      if (loaded) await spaces.open(spaceId);
      return { info: spaceInfoOf(spaces.rowOf(spaceId)), loaded };
    },

    /** The ACL log stays as it is; accepting later overrides. */
    async decline(spaceId: SpaceId): Promise<void> {
      const status = spaceStatusOf(row(spaceId));
      if (status === "active") throw svcError("space.not_invite_pending", { spaceId, status });
      if (status !== "invite_declined") await tech.set(SPACES_RULES, spaceId, { status: "invite_declined" });
    },
  };
}
