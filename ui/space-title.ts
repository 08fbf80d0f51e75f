import type { SpaceInfo } from "../src/protocol/space.ts";

/** A space's name, or the end of its id. */
export function spaceTitle(space: Pick<SpaceInfo, "id" | "name">): string {
  return space.name || `Unnamed …${space.id.slice(-6)}`;
}
