import type { Log } from "../../base/log.ts";
import type { JsonObject } from "../../protocol/json.ts";
import type { TriggerDefinition } from "./trigger-definition.ts";

export interface QueuedFire {
  readonly trigger: TriggerDefinition;
  readonly scheduledAtMs: number;
  readonly kind: "cron" | "once" | "event" | "manual";
  readonly args: JsonObject;
  readonly dry?: boolean;
  readonly runId: string;
  /** How many tries went before. */
  readonly attempt?: number;
  /** Told once the run's row is there. */
  readonly onRow?: () => void;
}

/** Most programs that run at once on a device. */
const RUNS_AT_ONCE = 4;
/** Most fires of one trigger that wait for its run to end. */
const WAITING_PER_TRIGGER = 16;

/** How far a run has come. */
export interface RunStages {
  /** Its row is there. */
  rowWritten(): void;
  /** Its program has ended; what is left is to write that down. Another run may begin. */
  programEnded(): void;
}

export interface RunQueue {
  /** False when too many wait already. */
  push(fire: QueuedFire): boolean;
  /** For a try that comes later. */
  pushLater(fire: QueuedFire, atMs: number): void;
  isBusy(triggerId: string): boolean;
  /** Starts what may start. */
  tick(nowMs: number): void;
  /** What waits of a trigger will not run. */
  drop(triggerId: string): void;
  cancel(runId: string): boolean;
  idle(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Runs fires in their order: one of a trigger at a time, a few programs at once. While the end of one run is written the next
 * begins, so that both are in one transaction.
 */
export function createRunQueue(deps: {
  run(fire: QueuedFire, signal: AbortSignal, stages: RunStages): Promise<void>;
  log: Log;
}): RunQueue {
  let waiting: QueuedFire[] = [];
  let later: { fire: QueuedFire; atMs: number }[] = [];
  const running = new Map<string, { controller: AbortController; runId: string; done: Promise<void> }>();
  /** Runs whose program has not ended. */
  let programs = 0;
  let closed = false;

  const startNext = (): void => {
    while (!closed && programs < RUNS_AT_ONCE) {
      const at = waiting.findIndex(({ trigger }) => !running.has(trigger.id));
      if (at < 0) return;
      const [fire] = waiting.splice(at, 1) as [QueuedFire];
      start(fire);
    }
  };
  const start = (fire: QueuedFire): void => {
    const { id } = fire.trigger;
    const controller = new AbortController();
    programs++;
    let holdsSlot = true;
    const programEnded = (): void => {
      if (!holdsSlot) return;
      holdsSlot = false;
      programs--;
      startNext();
    };
    const done = deps
      .run(fire, controller.signal, { rowWritten: () => fire.onRow?.(), programEnded })
      .catch((err: unknown) => deps.log.error("a run of a trigger failed in the server", { err, triggerId: id }))
      .then(() => {
        running.delete(id);
        fire.onRow?.(); // whoever waits for the row waits no longer
        programEnded();
        startNext();
      });
    running.set(id, { controller, runId: fire.runId, done });
  };

  return {
    push(fire) {
      const ahead = waiting.filter(({ trigger }) => trigger.id === fire.trigger.id).length;
      if (closed || ahead >= WAITING_PER_TRIGGER) return false;
      waiting.push(fire);
      return true;
    },
    pushLater: (fire, atMs) => void later.push({ fire, atMs }),
    isBusy: (triggerId) => running.has(triggerId) || waiting.some(({ trigger }) => trigger.id === triggerId),
    tick(nowMs) {
      const due = later.filter(({ atMs }) => atMs <= nowMs);
      if (due.length > 0) {
        later = later.filter(({ atMs }) => atMs > nowMs);
        waiting.push(...due.map(({ fire }) => fire));
      }
      startNext();
    },
    drop(triggerId) {
      const others = (fire: QueuedFire) => fire.trigger.id !== triggerId || fire.kind === "manual";
      waiting = waiting.filter(others);
      later = later.filter(({ fire }) => others(fire));
    },
    cancel(runId) {
      const found = [...running.values()].find((one) => one.runId === runId);
      found?.controller.abort();
      return found !== undefined;
    },
    async idle() {
      while (running.size > 0) await Promise.all([...running.values()].map(({ done }) => done));
    },
    async close() {
      closed = true;
      waiting = [];
      later = [];
      for (const { controller } of running.values()) controller.abort();
      await Promise.all([...running.values()].map(({ done }) => done));
    },
  };
}
