import { encodeCbor } from "../../base/dag-cbor.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Replica } from "../../space/port/replica.ts";
import { decodeSpacePayload } from "../session/messages.ts";
import type { EventTransport } from "../transport.ts";
import type { LinkManager } from "./link-manager.ts";
import type { PeerLink } from "./peer-link.ts";

const EVENT = "event";

/**
 * Events to the devices on the LAN. They go to all devices that share the space, which pick out what they want themselves.
 */
export function createLanEvents(deps: {
  readonly links: Pick<LinkManager, "links" | "onNotice">;
  readonly techId: SpaceId;
  readonly log: Log;
  open(spaceId: string): Promise<Replica | undefined>;
  take(replica: Replica, payload: Uint8Array): void;
}): EventTransport {
  const shares = (link: PeerLink, spaceId: SpaceId): boolean =>
    link.own || (spaceId !== deps.techId && link.sharedSpaces().includes(spaceId));
  deps.links.onNotice(EVENT, async (link, body) => {
    const { space: spaceId, payload } = decodeSpacePayload(body);
    const replica = await deps.open(spaceId);
    if (replica && shares(link, replica.id)) deps.take(replica, payload);
  });
  return {
    publish(replica, _topic, payload) {
      const body = encodeCbor({ space: replica.id, payload }).slice();
      for (const link of deps.links.links()) {
        if (!shares(link, replica.id) || (!link.own && replica.acl.hasLeft(link.accountId))) continue;
        link.notify(EVENT, body).catch((error: unknown) => deps.log.debug("events: not sent", { err: error }));
      }
    },
    watch() {},
    forget() {},
  };
}
