import type { SpaceId } from "../base/ids.ts";
import type { P2pDebug, P2pState } from "../protocol/sync.ts";
import { NETWORK_PEER } from "./progress.ts";
import type { Reach } from "./status.ts";
import type { Transport } from "./transport.ts";

/** The LAN, as far as its state is shown. */
export interface LanView {
  state(): P2pState;
  debug(): P2pDebug;
}

/** The transports there are, and whom they reach. */
export type ReachedReplicas = ReturnType<typeof createReachedReplicas>;

export function createReachedReplicas() {
  const transports: Transport[] = [];
  let lan: LanView | undefined;
  const names = (spaceId: SpaceId): string[] => transports.flatMap((transport) => [...transport.names(spaceId)]);

  return {
    transports: transports as readonly Transport[],
    add: (transport: Transport): void => void transports.push(transport),
    setLan: (view: LanView): void => {
      lan = view;
    },
    lan: (): LanView | undefined => lan,
    /** Who keeps a space and is reached, as progress knows them. */
    names,
    of(spaceId: SpaceId): Reach {
      const reached = names(spaceId);
      const networkPeers = reached.includes(NETWORK_PEER) ? 1 : 0;
      return {
        networkPeers,
        localPeers: reached.length - networkPeers,
        p2p: lan?.state() ?? "notpossible",
        names: reached,
        fault: transports.map((transport) => transport.fault(spaceId)).find((fault) => fault !== undefined),
      };
    },
    /** Who keeps the order of a space's ACL log, if it is reached. */
    sequencer: (spaceId: SpaceId): Transport | undefined =>
      transports.find((transport) => transport.appendAcl && transport.names(spaceId).length > 0),
  };
}
