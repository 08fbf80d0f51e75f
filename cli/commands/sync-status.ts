import { UsageError } from "../io/exit.ts";
import { command, group } from "./command.ts";

export const syncStatus = group("How far synchronisation is", {
  space: command({ summary: "Show it for a space", route: "GET /v1/spaces/:spaceId/sync-status" }),
  object: command({ summary: "Show it for an object", route: "GET /v1/spaces/:spaceId/sync-status/objects/:objectId" }),
  subscribe: command({
    summary: "Watch it for every space, or for one object",
    route: "GET /v1/sync-status/subscribe",
    args: {
      spaceId: { summary: "Id of the object's space", optional: true },
      objectId: { summary: "Id of the object", optional: true },
    },
    stream: true,
    other: {
      route: "GET /v1/spaces/:spaceId/sync-status/objects/:objectId/subscribe",
      when: ({ args }) => {
        if (args.spaceId !== undefined && args.objectId === undefined)
          throw new UsageError("missing argument <objectId>: a stream is for all spaces or one object");
        return args.spaceId !== undefined;
      },
    },
  }),
});
