import type { Log } from "./log.ts";
import type { Service } from "./service.ts";

/** A service that does its work at an interval. What is due while the run before is under way is left out. */
export function createPeriodicWork(deps: {
  readonly name: string;
  readonly everyMs: number;
  run(): void | Promise<void>;
  readonly log: Log;
}): Service {
  const { name, everyMs, log } = deps;
  let timer: ReturnType<typeof setInterval> | undefined;
  let running: Promise<void> | undefined;

  const runOnce = async (): Promise<void> => {
    try {
      await deps.run();
    } catch (err) {
      log.error("work that is done at an interval failed", { err, service: name });
    }
  };

  return {
    name,
    start() {
      timer = setInterval(() => {
        running ??= runOnce().finally(() => {
          running = undefined;
        });
      }, everyMs);
    },
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}
