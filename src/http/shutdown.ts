import type { Log } from "../base/log.ts";
import type { Listener } from "./listener.ts";
import type { StreamRegistry } from "./stream/stream-registry.ts";

export interface ShutdownDeps {
  /** Aborted at once, so that new requests are refused. */
  readonly stopping: AbortController;
  readonly listeners: readonly Listener[];
  readonly streams: StreamRegistry;
  /** Closes what is behind the listeners: workers, engine, lock. */
  closeEngine(): Promise<void>;
  readonly log: Log;
  readonly drainMs: number;
}

export interface Shutdown {
  /** Begins the shutdown. A second call stops waiting for requests and streams. */
  begin(cause: string): void;
  readonly finished: Promise<void>;
}

/**
 * Shuts a server down (SRV-4): it accepts no more requests, lets those under way and the streams'
 * `closed{server_shutdown}` finish until the deadline, cuts off the rest, and closes the engine.
 */
export function createShutdown(deps: ShutdownDeps): Shutdown {
  const { stopping, streams, listeners, log } = deps;
  const finished = Promise.withResolvers<void>();
  const hurry = Promise.withResolvers<"hurry">();

  async function stop(cause: string): Promise<void> {
    log.info("stopping", { cause });
    stopping.abort();
    const drained = Promise.all([
      streams.closeAll("server_shutdown"),
      ...listeners.map((listener) => listener.drain()),
    ]);
    const outcome = await Promise.race([drained.then(() => "drained"), deadline(deps.drainMs), hurry.promise]);
    if (outcome !== "drained") log.warn("requests are cut off", { cause: outcome });
    for (const listener of listeners) listener.abort();
    // What was acknowledged is durable, so an engine that does not finish closing is simply ended with the process.
    const closed = await Promise.race([deps.closeEngine().then(() => "closed"), deadline(deps.drainMs)]);
    if (closed === "closed") log.info("stopped");
    else log.error("the engine did not close in time");
  }

  let begun = false;
  return {
    begin(cause) {
      if (begun) {
        hurry.resolve("hurry");
        return;
      }
      begun = true;
      stop(cause)
        .catch((error: unknown) => log.error("the shutdown went wrong", { err: error }))
        .finally(finished.resolve);
    },
    finished: finished.promise,
  };
}

function deadline(ms: number): Promise<"deadline"> {
  return new Promise((resolve) => setTimeout(() => resolve("deadline"), ms).unref());
}
