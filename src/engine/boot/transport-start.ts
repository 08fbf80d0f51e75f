import type { Clock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Account } from "../../crypto/account.ts";
import type { Replica } from "../../space/port/replica.ts";
import type { Space } from "../../space/space.ts";
import type { EventRelay } from "../../sync/event-relay.ts";
import type { Outbox } from "../../sync/inbox/outbox.ts";
import type { ReceivedMessages } from "../../sync/inbox/received-messages.ts";
import type { createChunkServer } from "../../sync/lan/lan-chunks.ts";
import type { PeerLink } from "../../sync/lan/peer-link.ts";
import type { SpaceHints } from "../../sync/network/hint-follower.ts";
import type { NetworkStore } from "../../sync/network/network-store.ts";
import type { SyncService } from "../../sync/sync-service.ts";
import type { Transports } from "../../sync/transports.ts";
import type { Config } from "../config/config.ts";
import type { LinkKeys } from "../link-keys.ts";

/** What the transports are made with. */
export interface TransportsDeps {
  readonly config: Config;
  readonly account: Account;
  readonly deviceSeed: Uint8Array;
  readonly clock: Clock;
  readonly log: Log;
  readonly transports: Transports;
  readonly sync: SyncService;
  readonly tech: Space;
  readonly relay: EventRelay;
  readonly outbox: Outbox;
  readonly received: ReceivedMessages;
  readonly linkKeys: LinkKeys;
  /** Whether the engine is being closed: nothing begins then any more. */
  isClosing(): boolean;
  /** Whether others may have changes that this device lacks; boot then waits for them for a moment. */
  mayHaveOthers(): boolean;
  /** Returns the places on the network at which others say that a space is. */
  hintsOf(spaceId: SpaceId): SpaceHints;
  /** Returns the secret of the token by which this account joins, or joined, a space. */
  inviteSeedOf(spaceId: SpaceId): Uint8Array | undefined;
  /** Adds the network, or a peer, as a place for files. */
  useNetwork(store: NetworkStore): void;
  usePeer(link: PeerLink): void;
  serveChunk: ReturnType<typeof createChunkServer>;
  /** A space that is active here, opened; undefined for anything else. */
  open(spaceId: string): Promise<Replica | undefined>;
}

/** A transport that has started. */
export interface Started {
  /** Settles when it is known whether somebody is reached over it, if that ever is. */
  readonly reached: Promise<boolean>;
}
