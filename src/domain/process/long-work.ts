import type { Log } from "../../base/log.ts";
import type { LongWork, LongWorkSpec, StartLongWork } from "./port.ts";
import type { ProcessRegistry } from "./process-registry.ts";

/** Work that ends sooner is not worth showing (PROC-2). */
const ANNOUNCE_AFTER_MS = 3_000;
/** How often progress, or a sign of life, is reported (PROC-2). */
const REPORT_EVERY_MS = 10_000;

export interface LongWorkDeps {
  readonly processes: Pick<ProcessRegistry, "start" | "progress" | "finish">;
  readonly log: Log;
  readonly announceAfterMs?: number;
  readonly reportEveryMs?: number;
}

/** Shows work of the server in the registry of processes, in the scope of this device. Cancelling it is ignored. */
export function createLongWorks(deps: LongWorkDeps): StartLongWork {
  const { processes, log, announceAfterMs = ANNOUNCE_AFTER_MS, reportEveryMs = REPORT_EVERY_MS } = deps;
  const quietly = (report: Promise<unknown>, work: LongWorkSpec) =>
    report.catch((error: unknown) => log.warn("a process could not be shown", { err: error, kind: work.kind }));

  return (work): LongWork => {
    const id = `${work.kind}.${work.target}`;
    let amounts = { done: 0, total: 0 };
    let announced = false;
    let over = false;
    let timer = setTimeout(announce, announceAfterMs);
    timer.unref?.();

    function announce(): void {
      announced = true;
      const { kind, title, target } = work;
      void quietly(processes.start({ id, kind, title, target, scope: "device" }), work);
      report();
    }

    function report(): void {
      if (over) return;
      void quietly(processes.progress(id, amounts), work);
      timer = setTimeout(report, reportEveryMs);
      timer.unref?.();
    }

    return {
      progress(done, total) {
        amounts = { done, total };
      },
      end(error) {
        if (over) return;
        over = true;
        clearTimeout(timer);
        if (!announced) return;
        const message = error instanceof Error ? error.message.slice(0, 200) : "it did not end well";
        const finish =
          error === undefined ? { status: "done" as const } : { status: "failed" as const, error: { message } };
        void quietly(processes.progress(id, amounts), work);
        void quietly(processes.finish(id, finish), work);
      },
    };
  };
}
