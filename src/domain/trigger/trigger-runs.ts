import type { Clock } from "../../base/clock.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import type { RunOutcome, RunStore, TriggerStore } from "./port.ts";
import type { TriggerDefinition } from "./trigger-definition.ts";

const KEPT_RUNS = 50;
const VALUE_BYTES = 4096;
const ERROR_CHARS = 2000;
/** Longest trace that lies in the row itself. */
const INLINE_TRACE_BYTES = 32 << 10;
/** Of a row of a run that has not ended; what a crash leaves is closed as interrupted. */
export const RUNNING = "running";

/** A run as its row says it, from its start. */
export interface RunStart {
  readonly runId: string;
  readonly startedAtMs: number;
  readonly dry: boolean;
}

export type TriggerRuns = ReturnType<typeof createTriggerRuns>;

/** Rows of runs and what a trigger's record says of them. Writes nothing of a record but its own leaves. */
export function createTriggerRuns(deps: { triggers: TriggerStore; runs: RunStore; self: string; clock: Clock }) {
  const { triggers, runs, clock } = deps;

  /** Brings the record's figures in step with the kept rows, of which the run's own may still be on its way. */
  const rollUp = async (trigger: TriggerDefinition, run: RunStart, outcome: RunOutcome, set: JsonObject) => {
    const durationMs = clock.nowMs() - run.startedAtMs;
    const own = { id: run.runId, ts: dateOf(run.startedAtMs), status: outcome.status, durationMs };
    const others = runs.list(trigger.id).filter((row) => row["id"] !== run.runId);
    const rows: JsonObject[] = trigger.logRuns ? [own, ...others].slice(0, KEPT_RUNS) : others;
    const counted = rows.filter(({ status, dry }) => dry !== true && status !== "skipped" && status !== RUNNING);
    const durations = counted.map((row) => row["durationMs"]).filter((ms) => typeof ms === "number");
    const failed = counted.filter(({ status }) => status !== "ok").length;
    await triggers.write(trigger.id, {
      lastRunAt: dateOf(run.startedAtMs),
      lastDurationMs: durationMs,
      lastStatus: outcome.status,
      lastRunRef: run.runId,
      lastFuel: outcome.fuel ?? 0,
      lastMemPages: outcome.memPages ?? 0,
      ...(outcome.costUsd === null ? {} : { lastCostUsd: outcome.costUsd }),
      ...(durations.length === 0 ? {} : { avgDurationMs: mean(durations) }),
      ...(counted.length === 0 ? {} : { failureRate: failed / counted.length }),
      ...set,
    });
  };

  const insert = ({ id }: TriggerDefinition, { runId, startedAtMs }: RunStart, fields: JsonObject): Promise<void> =>
    runs.insert(runId, { runId, triggerId: id, device: deps.self, ts: dateOf(startedAtMs), ...fields });

  const prune = async (triggerId: string): Promise<void> => {
    const surplus = runs.list(triggerId).slice(KEPT_RUNS);
    if (surplus.length > 0) await runs.remove(surplus.map((row) => row["id"] as string));
  };

  return {
    /** Says that a run has begun. */
    async begin(trigger: TriggerDefinition, run: RunStart): Promise<void> {
      if (trigger.logRuns) await insert(trigger, run, { status: RUNNING, ...(run.dry ? { dry: true } : {}) });
    },

    /**
     * Writes how a run ended; `set` are leaves of the trigger's record that change with it. Everything is asked for at once, and
     * is one transaction unless that takes too long. The record goes first: a crash in between leaves a row that says that the
     * run goes on, and both are closed as interrupted, but never a row that ended beside a record that does not know of it.
     */
    async end(trigger: TriggerDefinition, run: RunStart, outcome: RunOutcome, set: JsonObject): Promise<void> {
      const { trace } = outcome;
      const inline = trace !== undefined && Buffer.byteLength(trace) <= INLINE_TRACE_BYTES;
      if (trigger.logRuns && trace !== undefined && !inline) await runs.keepTrace(run.runId, trace);
      const rowEnds = {
        ...outcomeFields(outcome),
        durationMs: clock.nowMs() - run.startedAtMs,
        ...(trace === undefined ? {} : { traceRef: run.runId }),
        ...(inline ? { trace } : {}),
      };
      await Promise.all([
        ...(run.dry ? [] : [rollUp(trigger, run, outcome, set)]),
        ...(trigger.logRuns ? [runs.complete(run.runId, rowEnds), prune(trigger.id)] : []),
      ]);
    },

    /** A fire that found its trigger busy. */
    async skipped(trigger: TriggerDefinition, run: RunStart): Promise<void> {
      if (!trigger.logRuns) return;
      await insert(trigger, run, { status: "skipped", durationMs: 0 });
      await prune(trigger.id);
    },

    /** Closes what a crash has left, before anything runs. As at a run's end the record goes first: the row says what is left. */
    async closeOrphans(): Promise<void> {
      for (const row of runs.running()) {
        const { id, triggerId, dry } = row as { id: string; triggerId?: string; dry?: boolean };
        if (triggerId !== undefined && dry !== true)
          await triggers.write(triggerId, { lastStatus: "interrupted", lastRunRef: id });
        await runs.complete(id, { status: "interrupted", error: "the server ended while it ran" });
      }
    },
  };
}

function outcomeFields({ status, error, value, fuel, memPages, costUsd, tokens }: RunOutcome): JsonObject {
  const small = value !== undefined && Buffer.byteLength(value) <= VALUE_BYTES;
  return {
    status,
    ...(error === undefined ? {} : { error: error.slice(0, ERROR_CHARS) }),
    ...(small ? { value: JSON.parse(value) as Json } : {}),
    ...(fuel === null ? {} : { fuel }),
    ...(memPages === null ? {} : { memPages }),
    ...(costUsd === null ? {} : { costUsd }),
    ...(tokens === undefined ? {} : { tokens: { ...tokens } }),
  };
}

export function dateOf(ms: number): JsonObject {
  return { $date: new Date(ms).toISOString() };
}

export function millisOf(value: unknown): number | undefined {
  const text = isJsonObject(value) ? value["$date"] : undefined;
  return typeof text === "string" ? Date.parse(text) : undefined;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
