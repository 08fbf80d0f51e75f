import type { SpaceInfo } from "../../src/protocol/space.ts";
import { personName } from "./people.ts";

/** A space's name, the other person's name for a one-to-one space, or the end of the space's id. */
export function spaceTitle(space: Pick<SpaceInfo, "id" | "name"> & Partial<SpaceInfo>): string {
  if (space.name) return space.name;
  if (space.spaceType === "svc.onetoone" && space.author) return personName(space.author);
  // The name is part of the content, which is not here yet.
  if (space.status === "joining") return "A space you asked to join";
  if (space.status === "invite_pending" || space.status === "invite_declined") return "A space you were invited to";
  return `Unnamed …${space.id.slice(-6)}`;
}
