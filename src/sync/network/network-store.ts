import { jetstreamManager } from "@nats-io/jetstream";
import { type ConnectionOptions, connect, type NatsConnection } from "@nats-io/transport-node";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { systemTimers } from "../../base/timers.ts";
import { authOptions, type NetworkCredentials } from "./auth.ts";
import { type Channel, type ChannelOptions, createChannel } from "./channel.ts";
import { type ChunkStore, createChunkStore } from "./chunk-store.ts";
import { readFromLeader } from "./direct-read.ts";
import { createEventBus, type EventBus } from "./event-bus.ts";
import { isAnchor, type LogCursor } from "./log-cursor.ts";
import { createNatsLink, type LinkState } from "./nats-link.ts";
import { networkFailure } from "./network-error.ts";
import { createInbox, type Inbox, type InboxOptions, sendToInbox } from "./network-inbox.ts";
import { type NetworkServers, networkUrlText } from "./network-url.ts";
import { createStreamWatch } from "./stream-watch.ts";
import { ensureStreams, type InitResult, initNetwork } from "./streams.ts";
import { type ChannelKeys, type LogKind, logSubject } from "./subjects.ts";

/**
 * The network as the rest of the service sees it: an untrusted store and forward. What is confirmed, missing or lost is
 * said by the channels; nothing here knows what a change is.
 */
export interface NetworkStore extends AsyncDisposable {
  state(): LinkState;
  /** Called on every change of the connection's state, and at once. Returns how to stop. */
  onState(listener: (state: LinkState) => void): () => void;
  /** What the operator has to admit: this account's nkey, `U…`. */
  readonly publicKey: string;
  openChannel(options: ChannelOptions): Channel;
  /** Counts connections; undefined while there is none. */
  connection(): number | undefined;
  /** Whether the log still has what was read where the cursor stands. Throws `network.unavailable` or `network.forbidden`. */
  holds(keys: ChannelKeys, kind: LogKind, cursor: LogCursor): Promise<boolean>;
  openInbox(options: InboxOptions): Inbox;
  sendToInbox(accountPublicKey: Uint8Array, message: Uint8Array): Promise<void>;
  readonly events: EventBus;
  readonly chunks: ChunkStore;
  /**
   * Makes the streams over a connection of its own. `replicas` as asked, else 3 on a cluster and 1 elsewhere. Throws
   * `network.unavailable` or `network.forbidden`.
   */
  init(replicas?: number): Promise<InitResult>;
  /** Tries to connect now. */
  hurry(): void;
  /** The last thing the server refused, for debug. */
  lastViolation(): string | undefined;
}

/** What keeping spaces in step takes of it. */
export type LogStore = Pick<
  NetworkStore,
  "state" | "openChannel" | "connection" | "holds" | typeof Symbol.asyncDispose
>;

export interface NetworkStoreOptions {
  readonly servers: NetworkServers;
  readonly credentials: NetworkCredentials;
  readonly clock: Clock;
  readonly log: Log;
  /** How often streams are asked whether they changed; for tests. */
  readonly streamPollMs?: number;
}

const INIT_TIMEOUT_MS = 10_000;

export function createNetworkStore(options: NetworkStoreOptions): NetworkStore {
  const { clock } = options;
  const log = options.log.child({ component: "network" });
  const identity = options.credentials.key.publicText;
  const connection = authOptions(options.servers, options.credentials);
  const link = createNatsLink({
    url: networkUrlText(options.servers),
    options: connection,
    identity,
    prepare: ensureStreams,
    clock,
    log,
  });
  const nowMs = () => clock.nowMs();
  const pollMs = options.streamPollMs;
  const watch = createStreamWatch({ link, log, nowMs, ...(pollMs === undefined ? {} : { pollMs }) });
  const events = createEventBus(link, log);
  const deps = { link, watch, log, timers: systemTimers, nowMs };

  return {
    state: () => link.state(),
    onState: (listener) => link.onState(listener),
    publicKey: identity,
    openChannel: (channel) => createChannel(deps, channel),
    connection: () => link.connection()?.number,
    holds: async (keys, kind, cursor) => {
      const connection = link.connection();
      if (!connection) throw networkFailure(undefined);
      return isAnchor(await readFromLeader(connection.jsm, keys.stream, logSubject(keys, kind), cursor.seq), cursor);
    },
    openInbox: (inbox) => createInbox(deps, inbox),
    sendToInbox: (accountPublicKey, message) => sendToInbox(link, accountPublicKey, message),
    events,
    chunks: createChunkStore(link),
    init: async (replicas) => {
      const result = await initOnce(connection, identity, replicas);
      link.hurry();
      return result;
    },
    hurry: () => link.hurry(),
    lastViolation: () => link.lastViolation(),
    [Symbol.asyncDispose]: async () => {
      watch[Symbol.dispose]();
      events[Symbol.dispose]();
      await link[Symbol.asyncDispose]();
    },
  };
}

async function initOnce(
  connection: ConnectionOptions,
  identity: string,
  replicas: number | undefined,
): Promise<InitResult> {
  let nc: NatsConnection | undefined;
  try {
    nc = await connect({ ...connection, reconnect: false, timeout: INIT_TIMEOUT_MS });
    const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: INIT_TIMEOUT_MS });
    return await initNetwork(jsm, replicas ?? (nc.info?.cluster === undefined ? 1 : 3));
  } catch (error) {
    throw networkFailure(error, identity);
  } finally {
    await nc?.close();
  }
}
