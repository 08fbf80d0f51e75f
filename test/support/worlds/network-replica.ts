import { systemClock } from "../../../src/base/clock.ts";
import { silentLog } from "../../../src/base/log.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { sha256 } from "../../../src/crypto/hash.ts";
import type { Channel, ChannelPort } from "../../../src/sync/network/channel.ts";
import type { LogCursor } from "../../../src/sync/network/log-cursor.ts";
import type { OutgoingBatch } from "../../../src/sync/network/log-publisher.ts";
import {
  createNetworkStore,
  type NetworkStore,
  type NetworkStoreOptions,
} from "../../../src/sync/network/network-store.ts";
import { parseNetworkUrl } from "../../../src/sync/network/network-url.ts";
import { createNetworkKey } from "../../../src/sync/network/nkey.ts";

/**
 * The least that a space has to do with a channel: keep items for ever, remember which the network confirmed under which
 * generation, offer the rest. What it holds survives its store, as a database would.
 */
export interface Replica {
  readonly port: ChannelPort;
  /** Items by the hex of their digest, in the order of arrival. */
  readonly items: Map<string, Uint8Array>;
  readonly acl: Uint8Array[];
  /** How often each item was delivered, under any generation. */
  readonly deliveries: Map<string, number>;
  itemsCursor: LogCursor | undefined;
  aclCursor: LogCursor | undefined;
  resets: number;
  unconfirmed(): number;
  /** It no longer knows what the network has. */
  doubt(): void;
  /** Adds items of its own. */
  write(...items: Uint8Array[]): void;
}

export function createReplica(): Replica {
  const confirmed = new Set<string>();
  const own = new Set<string>();
  const replica: Replica = {
    items: new Map(),
    acl: [],
    deliveries: new Map(),
    itemsCursor: undefined,
    aclCursor: undefined,
    resets: 0,
    unconfirmed: () => replica.items.size - confirmed.size,
    doubt: () => confirmed.clear(),
    write: (...items) => {
      for (const item of items) {
        const digest = sha256(item).toHex();
        replica.items.set(digest, item);
        own.add(digest);
      }
    },
    port: {
      outgoing: async ({ maxItems, maxBytes }) => nextBatch(maxItems, maxBytes),
      deliverItems: async (items, cursor) => {
        for (const { bytes } of items) {
          const name = sha256(bytes).toHex();
          replica.items.set(name, bytes.slice());
          confirmed.add(name);
          replica.deliveries.set(name, (replica.deliveries.get(name) ?? 0) + 1);
        }
        replica.itemsCursor = cursor;
      },
      resetItems: async (cursor) => {
        confirmed.clear();
        replica.resets++;
        replica.itemsCursor = cursor;
      },
      deliverAcl: async (records, cursor) => {
        for (const { bytes } of records) replica.acl.push(bytes.slice());
        replica.aclCursor = cursor;
      },
      resetAcl: async (cursor) => {
        replica.acl.length = 0;
        replica.aclCursor = cursor;
      },
      changed: () => {},
    },
  };
  const nextBatch = (maxItems: number, maxBytes: number): OutgoingBatch => {
    const items: Uint8Array[] = [];
    let exact = replica.resets > 0;
    let bytes = 0;
    for (const [digest, item] of replica.items) {
      if (items.length >= maxItems || bytes >= maxBytes) break;
      if (confirmed.has(digest)) continue;
      if (!own.has(digest)) exact = true;
      items.push(item);
      bytes += item.length;
    }
    return { items, exact };
  };
  return replica;
}

export function openStore(url: string, options: Partial<NetworkStoreOptions> = {}): NetworkStore {
  const servers = parseNetworkUrl(url);
  if ("problem" in servers) throw new Error(servers.problem);
  const credentials = { key: createNetworkKey(randomBytes(32)) };
  return createNetworkStore({ servers, credentials, clock: systemClock, log: silentLog, ...options });
}

export const openReplica = (store: NetworkStore, transportSecret: Uint8Array, replica: Replica): Channel =>
  store.openChannel({
    transportSecret,
    port: replica.port,
    itemsCursor: replica.itemsCursor,
    aclCursor: replica.aclCursor,
  });
