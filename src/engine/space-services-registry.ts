import type { SpaceId } from "../base/ids.ts";
import type { Space } from "../space/space.ts";
import type { SpaceEvents } from "../space/space-events.ts";
import type { SpaceHolds } from "../space/space-holds.ts";
import type { SpaceServices } from "./space-services.ts";

/** Keeps the services of each open space: they are made when the space opens, and closed before it closes. */
export function createSpaceServicesRegistry(deps: {
  events: SpaceEvents;
  holds: SpaceHolds;
  build(space: Space): SpaceServices;
}) {
  const servicesBySpace = new Map<SpaceId, SpaceServices>();
  deps.events.on("opened", (space) => void servicesBySpace.set(space.id, deps.build(space)));
  deps.events.on("closing", (space, waitFor) => {
    const services = servicesBySpace.get(space.id);
    servicesBySpace.delete(space.id);
    if (services) waitFor(services.close());
  });
  deps.holds.add((spaceId) => servicesBySpace.get(spaceId)?.busy() ?? false);
  return {
    of(space: Space): SpaceServices {
      const services = servicesBySpace.get(space.id);
      if (!services) throw new Error(`the space ${space.id} is closing`);
      return services;
    },
  };
}
