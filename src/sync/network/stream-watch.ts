import type { Log } from "../../base/log.ts";
import type { LiveConnection, NatsLink } from "./nats-link.ts";
import { streamInfo } from "./streams.ts";

/**
 * Asks about each stream in use, rarely, whether it is still the one that we know and whether it has grown: one small
 * question for each stream, not for each space. This finds what hints did not report, a stream made anew under a living
 * connection, and a dead connection.
 */
export interface StreamWatch extends Disposable {
  /** Registers a log; returns how to stop. */
  watch(stream: string, log: WatchedLog): () => void;
  /** When the stream was made, as the store's leader last said. */
  created(stream: string): string | undefined;
  /** Asks at once. */
  pollNow(): Promise<void>;
}

interface WatchedLog {
  /** When the leader last said that nothing is missing, Unix milliseconds. */
  checkedAtMs(): number | undefined;
  /** The stream grew and this log was not looked at for long. */
  stale(): void;
  /** The stream is not what it was. */
  suspect(): void;
}

/** With every stream in use this is one question and answer in 7.5 seconds, at most. */
const STREAM_POLL_MS = 60_000;
/** How long a log may rely on hints alone while its stream grows by others' messages. */
const SWEEP_MS = 300_000;

export function createStreamWatch(deps: {
  readonly link: NatsLink;
  readonly log: Log;
  readonly nowMs: () => number;
  readonly pollMs?: number;
}): StreamWatch {
  const { link, nowMs } = deps;
  const logsByStream = new Map<string, Set<WatchedLog>>();
  const known = new Map<string, { created: string; lastSeq: number }>();

  const note = (stream: string, created: string, lastSeq: number) => {
    const before = known.get(stream);
    known.set(stream, { created, lastSeq });
    if (!before) return;
    const logs = logsByStream.get(stream) ?? [];
    if (before.created !== created || lastSeq < before.lastSeq) {
      deps.log.warn("network: a stream is not the one it was", { stream, created, lastSeq });
      for (const log of logs) log.suspect();
    } else if (lastSeq > before.lastSeq) {
      for (const log of logs) if ((log.checkedAtMs() ?? 0) < nowMs() - SWEEP_MS) log.stale();
    }
  };
  const pollStream = async (connection: LiveConnection, stream: string) => {
    const info = await streamInfo(connection.jsm, stream);
    if (connection.signal.aborted) return;
    if (info) note(stream, info.created, info.state.last_seq);
    else link.renew(connection, `the stream ${stream} is gone`);
  };
  const poll = async () => {
    const connection = link.connection();
    if (!connection) return;
    try {
      await Promise.all([...logsByStream.keys()].map((stream) => pollStream(connection, stream)));
    } catch (error) {
      if (connection.signal.aborted) return;
      deps.log.warn("network: the streams do not answer", { err: error });
      link.renew(connection, "the streams do not answer");
    }
  };

  // When a connection comes up, its own look at the streams is the first poll. Followers then verify their cursors by
  // themselves.
  const stopFollowing = link.onConnected((connection) => {
    for (const [stream, info] of connection.streams)
      known.set(stream, { created: info.created, lastSeq: info.state.last_seq });
  });
  const timer = setInterval(() => void poll(), deps.pollMs ?? STREAM_POLL_MS);

  return {
    watch: (stream, log) => {
      const logs = logsByStream.get(stream) ?? new Set();
      logsByStream.set(stream, logs.add(log));
      return () => {
        logs.delete(log);
        if (logs.size === 0 && logsByStream.get(stream) === logs) logsByStream.delete(stream);
      };
    },
    created: (stream) => known.get(stream)?.created,
    pollNow: poll,
    [Symbol.dispose]: () => {
      clearInterval(timer);
      stopFollowing();
    },
  };
}
