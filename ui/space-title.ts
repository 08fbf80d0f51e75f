import type { SpaceInfo } from "../src/protocol/space.ts";
import { personName } from "./people.ts";

/** A space's name, the other person of a space of two, or the end of the space's id. */
export function spaceTitle(space: Pick<SpaceInfo, "id" | "name"> & Partial<SpaceInfo>): string {
  if (space.name) return space.name;
  if (space.spaceType === "svc.onetoone" && space.author) return personName(space.author);
  return `Unnamed …${space.id.slice(-6)}`;
}
