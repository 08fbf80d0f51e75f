import type { Log } from "../../base/log.ts";
import type { EventBus } from "../../domain/event/port.ts";
import type { ProcessRegistry } from "../../domain/process/process-registry.ts";
import type { ExecuteRun, RunOutcome } from "../../domain/trigger/port.ts";

const HEARTBEAT_MS = 10_000;

/** Shows every run as a process while it lasts, and ends a run whose process is cancelled. */
export function withProcesses(
  execute: ExecuteRun,
  deps: { processes: ProcessRegistry; events: EventBus; log: Log; accountId: string },
): ExecuteRun {
  const { processes, events, log } = deps;
  return async (request) => {
    const id = request.runId;
    const cancelled = new AbortController();
    const stopHearing = events.observe(({ type, target, data }) => {
      if (type !== "process.cancel" || target !== id) return;
      const identity = (data as { identity?: unknown } | undefined)?.identity;
      if (identity === undefined || identity === deps.accountId) cancelled.abort();
    });
    const quietly = (work: Promise<unknown>) =>
      void work.catch((err: unknown) => log.debug("a run could not be shown as a process", { err, runId: id }));
    const title = request.trigger.name.slice(0, 200);
    quietly(processes.start({ id, kind: "trigger.run", title, scope: "device" }));
    const heartbeat = setInterval(() => quietly(processes.progress(id, {})), HEARTBEAT_MS);
    heartbeat.unref();
    try {
      const outcome = await execute({ ...request, signal: AbortSignal.any([request.signal, cancelled.signal]) });
      quietly(processes.finish(id, finishOf(outcome)));
      return outcome;
    } finally {
      clearInterval(heartbeat);
      stopHearing();
    }
  };
}

function finishOf({ status, error }: RunOutcome) {
  if (status === "ok") return { status: "done" as const };
  if (status === "interrupted") return { status: "cancelled" as const };
  return { status: "failed" as const, error: { code: status, message: (error ?? status).slice(0, 200) } };
}
