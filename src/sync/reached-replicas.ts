import type { SpaceId } from "../base/ids.ts";
import { NETWORK_PEER } from "./progress.ts";
import type { Reach } from "./status.ts";
import type { LanView, Transport } from "./transport.ts";
import type { Transports } from "./transports.ts";

/** Whom the transports reach. */
export type ReachedReplicas = ReturnType<typeof createReachedReplicas>;

export function createReachedReplicas({ joined }: Transports) {
  const names = (spaceId: SpaceId): string[] => joined.flatMap((transport) => [...transport.names(spaceId)]);
  const lan = (): LanView | undefined => joined.find((transport) => transport.lan)?.lan;

  return {
    lan,
    /** Who keeps a space and is reached, as progress knows them. */
    names,
    of(spaceId: SpaceId): Reach {
      const reached = names(spaceId);
      const networkPeers = reached.includes(NETWORK_PEER) ? 1 : 0;
      return {
        networkPeers,
        localPeers: reached.length - networkPeers,
        p2p: lan()?.state() ?? "notpossible",
        names: reached,
        fault: joined.map((transport) => transport.fault(spaceId)).find((fault) => fault !== undefined),
      };
    },
    /** Who keeps the order of a space's ACL log, if it is reached. */
    sequencer: (spaceId: SpaceId): Transport | undefined =>
      joined.find((transport) => transport.appendAcl && transport.names(spaceId).length > 0),
  };
}
