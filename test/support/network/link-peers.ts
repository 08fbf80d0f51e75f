/** Peers of the LAN link, all on loopback, that find each other by multicast. */
import { afterEach } from "bun:test";
import type { SpaceId } from "../../../src/base/ids.ts";
import { type Log, silentLog } from "../../../src/base/log.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { createSigner } from "../../../src/crypto/sign.ts";
import { type LinkManager, startLinkManager } from "../../../src/sync/lan/link-manager.ts";
import type { PeerLink } from "../../../src/sync/lan/peer-link.ts";
import type { LinkKeys } from "../../../src/sync/lan/space-tokens.ts";
import { useOpened } from "../opened.ts";
import { until } from "../server/client.ts";

export interface LinkPeer {
  readonly manager: LinkManager;
  readonly keys: { own: Uint8Array; spaces: { spaceId: SpaceId; key: Uint8Array }[] };
  readonly account: ReturnType<typeof createSigner>;
  readonly events: string[];
  readonly logged: string[];
  /** By which it decides whom to dial when: so far ahead of the real one. */
  readonly clock: { aheadMs: number };
  /** How often it met its own device key. */
  ownKeySeen(): number;
}

export const spaceNamed = (name: string): SpaceId => name as SpaceId;
export const sharedSpace = { spaceId: spaceNamed("shared-space"), key: randomBytes(32) };

/** Until each has a link to each other. */
export const linked = (...peers: LinkPeer[]): Promise<void> =>
  until(() => peers.every(({ manager }) => manager.links().length === peers.length - 1), "all are linked");
export const linkOf = (peer: LinkPeer): PeerLink => peer.manager.links()[0]!;

/** Peers of a file's tests, which end with the test. */
export function useLinkPeers() {
  const keep = useOpened();
  /** Every test has a multicast port of its own, so that none hears another's peers. */
  let mdnsPort = 20_000 + Math.floor(Math.random() * 20_000);
  afterEach(() => void mdnsPort++);
  return {
    keep,
    mdnsPort: () => mdnsPort,
    async join(
      spaces: LinkPeer["keys"]["spaces"],
      also: {
        deviceSeed?: Uint8Array;
        accountSeed?: Uint8Array;
        own?: Uint8Array;
        /** Addresses of the interfaces that it has now. */
        discoverOn?(): string[];
        /** Another multicast port than that of the test. */
        mdnsPort?: number;
        /** Called when its keys were asked for, with how often that was. */
        asked?(times: number): void;
      } = {},
    ): Promise<LinkPeer> {
      const keys: LinkKeys & LinkPeer["keys"] = { own: also.own ?? randomBytes(32), spaces: [...spaces] };
      const account = createSigner(also.accountSeed ?? randomBytes(32));
      const events: string[] = [];
      const clock = { aheadMs: 0 };
      let times = 0;
      let ownKeys = 0;
      const logged: string[] = [];
      const note = (message: string) => void logged.push(message);
      const log: Log = { ...silentLog, warn: note, error: note, child: () => log };
      const manager = keep(
        await startLinkManager({
          deviceSeed: also.deviceSeed ?? randomBytes(32),
          account,
          log,
          host: "127.0.0.1",
          discoverOn: also.discoverOn ?? (() => ["127.0.0.1"]),
          mdnsPort: also.mdnsPort ?? mdnsPort,
          nowMs: () => performance.now() + clock.aheadMs,
          port: {
            ownKeySeen: () => void ownKeys++,
            keys() {
              const now = { ...keys, spaces: [...keys.spaces] };
              also.asked?.(++times);
              return now;
            },
            connected: (link) => events.push(`connected ${link.sharedSpaces().join()}`),
            disconnected: (_link, reason) => events.push(`disconnected ${reason}`),
            spacesChanged: (link) => events.push(`spaces ${link.sharedSpaces().join()}`),
          },
        }),
      );
      manager.onRequest("echo", async (_link, body) => body);
      return { manager, keys, account, events, logged, clock, ownKeySeen: () => ownKeys };
    },
  };
}
