import {
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  type StreamInfo,
} from "@nats-io/jetstream";
import { type ConnectionOptions, connect, type NatsConnection } from "@nats-io/transport-node";
import type { Clock } from "../../base/clock.ts";
import { createEvents } from "../../base/events.ts";
import type { Log } from "../../base/log.ts";
import { refusedAs, type SvcError, svcError } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import { createDirectReader, type DirectReader } from "./direct-read.ts";
import { networkFailure } from "./network-error.ts";

/**
 * One TCP connection to the network, with what hangs on it; after every loss there is another.
 * Nothing is carried over or buffered from one to the next, so a publish never goes out late behind its caller's back.
 */
export interface LiveConnection {
  readonly number: number;
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  readonly reader: DirectReader;
  /** The streams as they were when it was made. */
  readonly streams: ReadonlyMap<string, StreamInfo>;
  /** Aborted when the connection is gone. */
  readonly signal: AbortSignal;
}

/** `refused`: the server was reached and said no, or its streams are missing or misshapen; the reason says which. */
type LinkPhase = "connecting" | "online" | "offline" | "refused" | "closed";

export interface LinkState {
  readonly phase: LinkPhase;
  /** Why it is not online; display-safe. */
  readonly reason?: string;
  readonly code?: SvcError["code"];
  /** Unix milliseconds since when the phase holds. */
  readonly sinceMs: number;
  readonly serverVersion?: string;
  readonly clustered?: boolean;
}

export interface NatsLink extends AsyncDisposable {
  connection(): LiveConnection | undefined;
  state(): LinkState;
  /** Called on every change of state, and with the present one at once. Returns how to stop. */
  onState(listener: (state: LinkState) => void): () => void;
  /** Called with every connection as it is made, and with the present one at once. Returns how to stop. */
  onConnected(listener: (connection: LiveConnection) => void): () => void;
  /** The next connection, or the present one. Rejects when the signal aborts or the link closes. */
  online(signal?: AbortSignal): Promise<LiveConnection>;
  /** Ends the present connection and connects again: for a connection that is open but dead. */
  renew(connection: LiveConnection, reason: string): void;
  /** Tries to connect now instead of waiting out the pause. */
  hurry(): void;
  /** The server's last refusal of a publish or a subscription, for debug. */
  lastViolation(): string | undefined;
}

export interface NatsLinkDeps {
  /** The servers, for people: without what authenticates. */
  readonly url: string;
  readonly options: ConnectionOptions;
  /** Who connects, as the operator has to know it: the network key. */
  readonly identity: string;
  /** Checks and, where allowed, makes the streams; throws what keeps the network from being used. */
  readonly prepare: (jsm: JetStreamManager, clustered: boolean) => Promise<ReadonlyMap<string, StreamInfo>>;
  readonly clock: Clock;
  readonly log: Log;
  readonly connect?: (options: ConnectionOptions) => Promise<NatsConnection>;
}

const CONNECT_TIMEOUT_MS = 5000;
/** Shorter than an election takes, so that the first answer after one is not missed by much. */
const API_TIMEOUT_MS = 3000;
const PUBLISH_TIMEOUT_MS = 5000;
const PAUSE_FIRST_MS = 250;
const PAUSE_MAX_MS = 30_000;
/** Older clusters let several writers win one compare-and-append. */
const VERSION_MIN = [2, 10, 27] as const;
/** Batched direct get. */
const VERSION_BATCH = [2, 11, 0] as const;

export function createNatsLink(deps: NatsLinkDeps): NatsLink {
  const { clock, log } = deps;
  const closing = new AbortController();
  const events = createEvents<{ state: [state: LinkState]; connected: [connection: LiveConnection] }>();
  let state: LinkState = { phase: "connecting", sinceMs: clock.nowMs() };
  let current: LiveConnection | undefined;
  let connections = 0;
  let violation: string | undefined;
  let loggedReason: string | undefined;
  let endPause: () => void = () => {};

  const setState = (phase: LinkPhase, rest: Omit<LinkState, "phase" | "sinceMs"> = {}) => {
    const same = state.phase === phase && state.reason === rest.reason;
    state = { phase, ...rest, sinceMs: same ? state.sinceMs : clock.nowMs() };
    if (!same) events.emit("state", state);
  };

  const openConnection = async (): Promise<{ connection: LiveConnection; lost: Promise<unknown> }> => {
    const nc = await (deps.connect ?? connect)({
      ...deps.options,
      reconnect: false,
      timeout: CONNECT_TIMEOUT_MS,
      pingInterval: 60_000,
      noEcho: true,
      noAsyncTraces: true,
      ignoreClusterUpdates: true,
    });
    const lost = nc.closed();
    try {
      const version = nc.info?.version ?? "0.0.0";
      if (!versionAtLeast(version, VERSION_MIN)) {
        throw refusedAs(
          "network.forbidden",
          undefined,
          refusal("network.old_server", { version, least: VERSION_MIN.join(".") }),
        );
      }
      void watchStatus(nc);
      const clustered = nc.info?.cluster !== undefined;
      const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: API_TIMEOUT_MS });
      const streams = await deps.prepare(jsm, clustered);
      const ended = new AbortController();
      const reader = createDirectReader(nc, versionAtLeast(version, VERSION_BATCH));
      const js = jetstream(nc, { timeout: PUBLISH_TIMEOUT_MS });
      const connection: LiveConnection = { number: ++connections, nc, js, jsm, reader, streams, signal: ended.signal };
      void lost.then(() => {
        if (current === connection) current = undefined;
        reader.close();
        ended.abort(refusedAs("network.unavailable", undefined, refusal("network.lost")));
      });
      return { connection, lost };
    } catch (error) {
      await nc.close().catch(() => {}); // the error that made us close is the one to tell
      throw error;
    }
  };

  const watchStatus = async (nc: NatsConnection) => {
    for await (const status of nc.status()) {
      if (status.type !== "error") continue;
      const refused = networkFailure(status.error);
      if (refused.code === "network.forbidden") violation = refused.message;
      log.warn("network: the server reports an error", { err: status.error });
    }
  };

  /** One line while it stays the same; the attempts go on. A stack would only show where we wait. */
  const reportUnusable = (failure: SvcError) => {
    const reason = `${failure.message}${causeText(failure)}`;
    if (reason !== loggedReason) log.warn("network: cannot use it", { url: deps.url, reason });
    loggedReason = reason;
  };

  const run = async () => {
    let pauseMs = PAUSE_FIRST_MS;
    while (!closing.signal.aborted) {
      try {
        const { connection, lost } = await openConnection();
        if (closing.signal.aborted) return void (await connection.nc.close());
        current = connection;
        pauseMs = PAUSE_FIRST_MS;
        setState("online", {
          serverVersion: connection.nc.info?.version ?? "",
          clustered: connection.nc.info?.cluster !== undefined,
        });
        loggedReason = undefined;
        log.info("network: connected", { serverVersion: connection.nc.info?.version });
        events.emit("connected", connection);
        const stop = () => void connection.nc.close();
        closing.signal.addEventListener("abort", stop, { once: true });
        const reason = await lost;
        closing.signal.removeEventListener("abort", stop);
        const cause = reason instanceof Error ? reason : undefined;
        setState("offline", { reason: "The connection to the network was lost", code: "network.unavailable" });
        if (cause) log.info("network: connection lost", { err: cause });
      } catch (error) {
        const failure = networkFailure(error, deps.identity);
        reportUnusable(failure);
        setState(failure.code === "network.forbidden" ? "refused" : "offline", {
          reason: failure.message,
          code: failure.code,
        });
      }
      await new Promise<void>((done) => {
        const timer = setTimeout(done, pauseMs * (0.75 + Math.random() / 2));
        endPause = () => {
          clearTimeout(timer);
          done();
        };
        if (closing.signal.aborted) endPause();
      });
      pauseMs = Math.min(PAUSE_MAX_MS, pauseMs * 2);
    }
  };
  const running = run();

  return {
    connection: () => current,
    state: () => state,
    onState: (listener) => {
      const stop = events.on("state", listener);
      listener(state);
      return stop;
    },
    onConnected: (listener) => {
      const stop = events.on("connected", listener);
      if (current) listener(current);
      return stop;
    },
    online: (signal) => {
      if (current) return Promise.resolve(current);
      return new Promise<LiveConnection>((resolve, reject) => {
        const finish = (end: () => void) => {
          stop();
          signal?.removeEventListener("abort", onAbort);
          closing.signal.removeEventListener("abort", onAbort);
          end();
        };
        const stop = events.on("connected", (connection) => finish(() => resolve(connection)));
        const onAbort = () => finish(() => reject(svcError("network.unavailable")));
        signal?.addEventListener("abort", onAbort);
        closing.signal.addEventListener("abort", onAbort);
        if (signal?.aborted || closing.signal.aborted) onAbort();
      });
    },
    renew: (connection, reason) => {
      if (current !== connection) return;
      log.info("network: connecting anew", { reason });
      void connection.nc.close();
    },
    hurry: () => endPause(),
    lastViolation: () => violation,
    [Symbol.asyncDispose]: async () => {
      closing.abort();
      endPause();
      await running;
      setState("closed");
    },
  };
}

function versionAtLeast(version: string, minimum: readonly [number, number, number]): boolean {
  const parts = version.split(/[.-]/).slice(0, 3).map(Number);
  for (let i = 0; i < 3; i++) {
    const part = parts[i] ?? 0;
    if (part !== minimum[i]) return part > minimum[i]!;
  }
  return true;
}

/** What happened below, where the failure's own message does not say it: `: connection refused`. */
function causeText({ cause }: SvcError): string {
  return cause instanceof Error && cause.message !== "" ? `: ${cause.message}` : "";
}
