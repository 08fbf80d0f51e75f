import { command, group } from "./command.ts";

export const debug = group("Diagnosis; what it shows may change", {
  space: command({
    summary: "Show a space's synchronisation counters by peer",
    route: "GET /v1/spaces/:spaceId/debug",
  }),
  object: command({
    summary: "Show an object's tree; may hold up its writes, so do not poll",
    route: "GET /v1/spaces/:spaceId/debug/objects/:objectId",
  }),
  p2p: command({ summary: "Show discovery in the local network", route: "GET /v1/debug/p2p" }),
});
