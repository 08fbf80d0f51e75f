import type { Service } from "../../base/service.ts";
import { waitAtMost } from "../../base/timers.ts";
import { svcError } from "../../protocol/errors.ts";
import type { RunningRuntime } from "./running.ts";
import type { RuntimeDeps } from "./runtime-deps.ts";
import type { TriggerControl } from "./trigger-control.ts";

/** The runtime of triggers and programs: a worker behind the requests. */
export interface Runtime extends Service {
  /** Returns the operations of the control API and the command line; waits until the agent space exists. */
  control(): Promise<TriggerControl>;
}

const RETRY_MS = 10_000;
const STOP_MS = 2_000;

export function createRuntime(deps: RuntimeDeps): Runtime {
  const { log } = deps;
  let running: RunningRuntime | undefined;
  let stopping = false;
  const ending = Promise.withResolvers<void>();
  let starting: Promise<void> = Promise.resolve();
  const ready = Promise.withResolvers<TriggerControl>();
  ready.promise.catch(() => {}); // only requests wait for it

  /** Tries until it succeeds: a space that has not come from another device yet may come later. */
  const startUp = async (): Promise<void> => {
    for (;;) {
      try {
        const { startRunning } = await import("./running.ts");
        const made = await startRunning(deps, () => stopping);
        ready.resolve(made.control);
        if (stopping) await made.close();
        running = stopping ? undefined : made;
        return;
      } catch (err) {
        if (stopping) return;
        log.warn("the agent's space is not ready, it is tried again", { err });
        await waitAtMost(RETRY_MS, ending.promise);
        if (stopping) return;
      }
    }
  };

  return {
    name: "runtime",
    start() {
      starting = startUp();
    },
    async stop() {
      stopping = true;
      ending.resolve();
      ready.reject(svcError("server.unavailable"));
      // It may wait for what other devices have made; it then ends itself when the wait is over.
      await waitAtMost(STOP_MS, starting);
      await running?.close();
    },
    control: () => ready.promise,
  };
}
