import type { P2pDebug, SpaceDebug } from "../../src/protocol/sync.ts";
import { call, spacePath } from "./api-client.ts";

export const syncApi = {
  /** Runs a round; resolves when it has ended. */
  force: (spaceId: string) => call<void>("POST", spacePath(spaceId, "sync")),
  debug: (spaceId: string) => call<SpaceDebug>("GET", spacePath(spaceId, "debug")),
  peers: () => call<P2pDebug>("GET", "/v1/debug/p2p"),
};
