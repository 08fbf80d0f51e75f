import { bytesToHex } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Replica } from "../../space/port/replica.ts";
import type { EventTransport } from "../transport.ts";
import type { NetworkStore } from "./network-store.ts";
import { type ChannelKeys, deriveChannelKeys } from "./subjects.ts";

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
