import { svcError } from "../../protocol/errors.ts";
import { LIMITS } from "../../protocol/limits.ts";
import type { CloseReason } from "../../protocol/sse-frames.ts";
import type { SubscriptionRequest } from "../../protocol/stream.ts";

/** An open stream, as its registry sees it. */
export interface OpenStream {
  /** Sends a keepalive when idle, and cuts off a dead reader. `nowMs` is monotonic. */
  tick(nowMs: number): void;
  close(reason: CloseReason): void;
}

export interface StreamTimes {
  readonly keepaliveMs: number;
  readonly readDeadlineMs: number;
}

/** A stream that carries others, as the requests that change it see it. */
interface OpenMultiplex {
  /** Ids of its subscriptions. */
  readonly ids: Iterable<string>;
  /** Adds subscriptions; the caller has checked that their ids are free. */
  add(subscriptions: readonly SubscriptionRequest[]): void;
  /** From now on no frame of them is sent. */
  drop(ids: readonly string[]): void;
  /** Resolves when everything handed over so far is written to the socket, or when the connection has ended. */
  written(): Promise<void>;
}

/** The open streams of a server: one timer serves all, and shutdown ends them here. */
export interface StreamRegistry extends Disposable {
  readonly size: number;
  readonly times: StreamTimes;
  /** Streams that carry others, by the id in their `ready` frame. */
  readonly multiplexById: Map<string, OpenMultiplex>;
  /** Throws server.unavailable when too many are open or the server stops. */
  admit(): void;
  add(stream: OpenStream): void;
  remove(stream: OpenStream): void;
  /** Ends every stream with `closed{reason}` and admits no more; resolves when all readers have taken it. */
  closeAll(reason: CloseReason): Promise<void>;
}

const DEFAULT_TIMES: StreamTimes = { keepaliveMs: LIMITS.keepaliveMs, readDeadlineMs: LIMITS.streamReadDeadlineMs };

export function createStreamRegistry(times: StreamTimes = DEFAULT_TIMES): StreamRegistry {
  const streams = new Set<OpenStream>();
  const tickMs = Math.max(5, Math.min(times.keepaliveMs, times.readDeadlineMs) / 10);
  let timer: Timer | undefined;
  let stopping = false;
  let whenEmpty: (() => void) | undefined;

  function stopTimer(): void {
    clearInterval(timer);
    timer = undefined;
  }

  return {
    get size() {
      return streams.size;
    },
    times,
    multiplexById: new Map(),
    admit() {
      if (stopping) throw svcError("server.unavailable");
      if (streams.size >= LIMITS.openStreams) {
        throw svcError(
          "server.unavailable",
          undefined,
          `${LIMITS.openStreams} streams are open, which is the limit; close some`,
        );
      }
    },
    add(stream) {
      streams.add(stream);
      timer ??= setInterval(() => {
        const nowMs = performance.now();
        for (const open of streams) open.tick(nowMs);
      }, tickMs).unref();
    },
    remove(stream) {
      streams.delete(stream);
      if (streams.size > 0) return;
      stopTimer();
      whenEmpty?.();
    },
    async closeAll(reason) {
      stopping = true;
      for (const stream of [...streams]) stream.close(reason);
      if (streams.size > 0) await new Promise<void>((resolve) => (whenEmpty = resolve));
    },
    [Symbol.dispose]: stopTimer,
  };
}
