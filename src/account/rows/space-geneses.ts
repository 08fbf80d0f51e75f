import { ONE_TO_ONE_TYPE } from "../../acl/record/space-header.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Account } from "../../crypto/account.ts";
import { parseAccountId } from "../../crypto/account-id.ts";
import type { SpaceGenesis } from "../../space/genesis.ts";
import { oneToOneGenesis } from "../../space/one-to-one.ts";
import { derivedSpaceGenesis } from "../../space/space.ts";
import type { TechSpace } from "../own-space/tech-space.ts";
import type { SpaceRoots } from "./space-roots.ts";

/** Names of the spaces that every account may derive (SPACE-3). */
export const DERIVED_SPACES = ["agent"] as const;

export type SpaceGeneses = ReturnType<typeof createSpaceGeneses>;

/** What spaces can be made from here, whether they are or not. */
export function createSpaceGeneses({ account, tech, roots }: { account: Account; tech: TechSpace; roots: SpaceRoots }) {
  let derivedGeneses: SpaceGenesis[] | undefined;
  const derived = (spaceId: string): SpaceGenesis | undefined => {
    derivedGeneses ??= DERIVED_SPACES.map((name) => derivedSpaceGenesis(account, name));
    return derivedGeneses.find((genesis) => genesis.spaceId === spaceId);
  };

  const pair = (spaceId: SpaceId): SpaceGenesis | undefined => {
    const row = tech.spaceRow(spaceId);
    const author = row?.["author"];
    if (row?.["spaceType"] !== ONE_TO_ONE_TYPE || typeof author !== "string") return undefined;
    const other = parseAccountId(author);
    const genesis = other && oneToOneGenesis(account, other);
    return genesis?.spaceId === spaceId ? genesis : undefined;
  };

  return {
    derived,
    of: (spaceId: SpaceId): SpaceGenesis | undefined => derived(spaceId) ?? pair(spaceId) ?? roots.of(spaceId)?.genesis,
  };
}
