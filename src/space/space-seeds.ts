import type { SpaceId } from "../base/ids.ts";
import { parseAccountId } from "../crypto/account-id.ts";
import type { Account } from "./account.ts";
import { seedOneToOneSpace } from "./one-to-one.ts";
import { seedDerivedSpace } from "./space.ts";
import { ONE_TO_ONE_TYPE } from "./space-header.ts";
import type { SpaceRoots } from "./space-roots.ts";
import type { SpaceSeed } from "./space-seed.ts";
import type { TechSpace } from "./tech-space.ts";

/** Names of the spaces that every account may derive (gaps § 0). */
export const DERIVED_SPACES = ["agent"] as const;

/** What spaces can be made from here, whether they are or not. */
export function createSpaceSeeds({ account, tech, roots }: { account: Account; tech: TechSpace; roots: SpaceRoots }) {
  let derivedSeeds: SpaceSeed[] | undefined;
  const derived = (spaceId: string): SpaceSeed | undefined => {
    derivedSeeds ??= DERIVED_SPACES.map((name) => seedDerivedSpace(account, name));
    return derivedSeeds.find((seed) => seed.spaceId === spaceId);
  };

  const pair = (spaceId: SpaceId): SpaceSeed | undefined => {
    const row = tech.spaceRow(spaceId);
    const author = row?.["author"];
    if (row?.["spaceType"] !== ONE_TO_ONE_TYPE || typeof author !== "string") return undefined;
    const other = parseAccountId(author);
    const seed = other && seedOneToOneSpace(account, other);
    return seed?.spaceId === spaceId ? seed : undefined;
  };

  return {
    derived,
    of: (spaceId: SpaceId): SpaceSeed | undefined => derived(spaceId) ?? pair(spaceId) ?? roots.of(spaceId)?.seed,
  };
}
