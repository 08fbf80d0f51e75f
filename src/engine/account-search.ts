import { join } from "node:path";
import { createSearchService, type SearchService } from "../domain/search/search-service.ts";
import type { SpaceEvents } from "../space/space-events.ts";
import type { BootOptions } from "./boot/boot-engine.ts";
import type { OpenAccount } from "./boot/open-account.ts";
import type { Bus } from "./boot/open-bus.ts";
import type { Stores } from "./boot/open-stores.ts";

/** Search over the account's spaces: told of what is committed in them, and of those that leave this device. */
export function openSearch(
  { accountDir, config, log }: BootOptions,
  parts: { stores: Stores; opened: OpenAccount; bus: Bus; events: SpaceEvents },
): SearchService {
  const { stores, opened, bus, events } = parts;
  const { spaces, tech } = opened;
  const search = createSearchService({
    enabled: config["index.enabled"],
    directory: join(accountDir, "index"),
    databaseOf: stores.paths.space,
    open: async (spaceId) => {
      const { id, engine } = await spaces.open(spaceId);
      const { rowLog } = engine.store;
      return {
        types: stores.schemaOf(id).view,
        trimLog: (before, limit) => engine.background(() => rowLog.trim(before, limit)),
        logHead: rowLog.head,
      };
    },
    activeIds: spaces.activeIds,
    startLongWork: bus.startLongWork,
    log,
  });
  events.on("committed", ({ id }) => {
    if (id !== tech.space.id) search.committed(id);
  });
  events.on("ended", search.ended);
  return search;
}
