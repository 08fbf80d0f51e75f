import type { SpaceId } from "../base/ids.ts";
import type { Space } from "../space/space.ts";
import type { SpaceEvents } from "../space/space-events.ts";

/** Which of the spaces that were open have other members. */
export function createSharedSpaces(events: SpaceEvents): { has(spaceId: SpaceId): boolean } {
  const shared = new Set<SpaceId>();
  const note = (space: Space): void => {
    const active = [...space.acl.state.members.values()].filter(({ status }) => status === "active");
    if (active.length > 1 || space.header.kind === "onetoone") shared.add(space.id);
    else shared.delete(space.id);
  };
  events.on("opened", note);
  events.on("aclChanged", note);
  return { has: (spaceId) => shared.has(spaceId) };
}
