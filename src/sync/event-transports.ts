import { bytesToHex } from "../base/bytes.ts";
import { encodeCbor } from "../base/dag-cbor.ts";
import type { SpaceId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Replica } from "../space/replica.ts";
import type { LinkManager } from "./lan/link-manager.ts";
import type { PeerLink } from "./lan/peer-link.ts";
import type { NetworkStore } from "./network/network-store.ts";
import { type ChannelKeys, deriveChannelKeys } from "./network/subjects.ts";
import { decodeSpacePayload } from "./session/messages.ts";
import type { EventTransport } from "./transport.ts";

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

/** Events over the network's publish and subscribe. */
export function createNetworkEvents(store: NetworkStore, log: Log): EventTransport {
  const keysBySpace = new Map<SpaceId, { readonly readKey: string; readonly keys: ChannelKeys }>();
  const watchedBySpace = new Map<SpaceId, Map<string, Disposable>>();
  const unwatch = (spaceId: SpaceId): void => {
    for (const subscription of watchedBySpace.get(spaceId)?.values() ?? []) subscription[Symbol.dispose]();
    watchedBySpace.delete(spaceId);
  };
  /**
   * The subscriptions of the space's present place. They move with the read key; nothing is listened for at the place
   * before.
   */
  const keysOf = (replica: Replica): ChannelKeys | undefined => {
    const readKey = bytesToHex(replica.readKey()?.id ?? new Uint8Array(0));
    const known = keysBySpace.get(replica.id);
    if (known?.readKey === readKey) return known.keys;
    const secret = replica.transportSecret();
    const keys = secret && deriveChannelKeys(secret);
    if (!keys) return undefined;
    unwatch(replica.id);
    keysBySpace.set(replica.id, { readKey, keys });
    return keys;
  };
  return {
    publish(replica, topic, payload) {
      const keys = keysOf(replica);
      if (keys && !store.events.publish(keys, topic, payload)) log.debug("events: the network is not reached");
    },
    watch(replica, patterns, take) {
      const keys = keysOf(replica);
      if (!keys) return;
      const watched = watchedBySpace.get(replica.id) ?? new Map<string, Disposable>();
      for (const [pattern, subscription] of watched) {
        if (patterns.includes(pattern)) continue;
        subscription[Symbol.dispose]();
        watched.delete(pattern);
      }
      for (const pattern of patterns)
        if (!watched.has(pattern)) watched.set(pattern, store.events.subscribe(keys, pattern, take));
      watchedBySpace.set(replica.id, watched);
    },
    forget(spaceId) {
      unwatch(spaceId);
      keysBySpace.delete(spaceId);
    },
  };
}
