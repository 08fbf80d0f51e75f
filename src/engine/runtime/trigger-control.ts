import type { Clock } from "../../base/clock.ts";
import { readTrigger, type TriggerDefinition } from "../../domain/trigger/trigger-definition.ts";
import { dateOf } from "../../domain/trigger/trigger-runs.ts";
import type { FireRequest, TriggerScheduler } from "../../domain/trigger/trigger-scheduler.ts";
import { refusedAs, refusedPart, svcError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { ProgramProcesses } from "../../sandbox/program-processes.ts";
import { type ReplayResult, replayProgram } from "../../sandbox/program-replay.ts";
import { parseTrace } from "../../sandbox/program-trace.ts";
import { type AgentRecords, isTraceInFile } from "./agent-records.ts";
import { type ProgramStore, readProgramSpec } from "./program-store.ts";
import type { TraceFiles } from "./trace-files.ts";

const LISTED_RUNS = 20;
const MAX_NEXT = 100;
const CHARS_A_TURN = 1 << 16;

export interface TriggerControlDeps {
  readonly records: AgentRecords;
  readonly scheduler: TriggerScheduler;
  readonly programs: ProgramStore;
  readonly processes: ProgramProcesses;
  readonly traces: TraceFiles;
  readonly clock: Clock;
}

export type TriggerControl = ReturnType<typeof createTriggerControl>;

/** The operations of the control API: they write to the records, and the scheduler follows the records. */
export function createTriggerControl(deps: TriggerControlDeps) {
  const { records, scheduler, programs, traces, clock } = deps;

  const recordOf = (triggerId: string): JsonObject => {
    const record = records.record(triggerId);
    if (!record) throw svcError("trigger.not_found", { triggerId });
    return record;
  };
  const shown = (record: JsonObject): JsonObject => {
    const dueMs = scheduler.nextDueMs(record["id"] as string);
    return {
      ...record,
      owner: record["owner"] ?? "",
      avgDurationMs: record["avgDurationMs"] ?? null,
      failureRate: record["failureRate"] ?? null,
      ...(dueMs === undefined ? {} : { nextDueAt: dateOf(dueMs) }),
    };
  };
  const write = async (triggerId: string, set: JsonObject, unset?: readonly string[]): Promise<JsonObject> => {
    recordOf(triggerId);
    await records.triggers.write(triggerId, set, unset);
    scheduler.tick();
    return shown(recordOf(triggerId));
  };
  const runOf = (runId: string): JsonObject => {
    const row = records.runRow(runId);
    if (!row) throw svcError("run.not_found", { runId });
    return row;
  };
  const traceOf = async (row: JsonObject): Promise<string | undefined> => {
    if (typeof row["trace"] === "string") return row["trace"];
    return isTraceInFile(row) ? traces.read(row["id"] as string) : undefined;
  };
  /** A trigger that is switched on by hand resets its breaker, whatever the record said. */
  const enabling = (record: JsonObject): JsonObject =>
    record["enabled"] === true ? { enabled: true } : { enabled: true, consecutiveFailures: 0 };

  return {
    list: (): JsonObject[] => records.triggers.list().map(shown),
    get: (triggerId: string): JsonObject => shown(recordOf(triggerId)),

    runs(triggerId: string): JsonObject[] {
      recordOf(triggerId);
      return records.runs.list(triggerId).slice(0, LISTED_RUNS).map(withoutTrace);
    },

    patch(triggerId: string, { spec, enabled }: { spec?: Json; enabled?: boolean }): Promise<JsonObject> {
      const record = recordOf(triggerId);
      if (spec !== undefined) checkSpec(record, spec, clock.nowMs());
      return write(triggerId, {
        ...(spec === undefined ? {} : { spec }),
        ...(enabled === undefined ? {} : enabled ? enabling(record) : { enabled }),
      });
    },
    enable: (triggerId: string): Promise<JsonObject> => {
      const record = recordOf(triggerId);
      const cleared = record["lastStatus"] === "auto_disabled" ? ["lastStatus"] : [];
      return write(triggerId, { enabled: true, consecutiveFailures: 0 }, cleared);
    },
    disable: (triggerId: string): Promise<JsonObject> => write(triggerId, { enabled: false }),

    async runNow(triggerId: string, request: FireRequest): Promise<{ runId: string }> {
      scheduler.tick(); // so that the scheduler knows a trigger that was created a moment ago
      return { runId: await scheduler.runNow(recordOf(triggerId), request) };
    },

    next(triggerId: string, count: number): { next: JsonObject[] } {
      const nowMs = clock.nowMs();
      return {
        next: occurrences(readTrigger(recordOf(triggerId), nowMs), nowMs, Math.min(count, MAX_NEXT)).map(dateOf),
      };
    },

    /** Returns the row, and the trace as its lines of JSON; undefined where there is no trace, or where the content is none. */
    async run(runId: string): Promise<{ run: JsonObject; trace: string[] | undefined }> {
      const row = runOf(runId);
      const trace = await traceOf(row);
      return { run: withoutTrace(row), trace: trace === undefined ? undefined : await jsonLines(trace) };
    },

    cancel(runId: string): void {
      runOf(runId);
      if (!scheduler.cancel(runId)) throw svcError("run.not_running", { runId });
    },

    /** Runs a run's program again with the answers in its trace, and reports whether the result is the same. */
    async replay(runId: string): Promise<ReplayResult> {
      const row = runOf(runId);
      const text = await traceOf(row);
      const trace = text === undefined ? undefined : parseTrace(text);
      const refuse = (why: Refusal) =>
        refusedAs("run.not_replayable", { runId }, refusal("run.not_replayed", { why }), { reason: why });
      if (!trace) throw refuse(refusal("run.no_trace"));
      if (trace.end.truncated) throw refuse(refusal("run.trace_cut"));
      if (trace.end.fuel === null || trace.end.status === "timeout")
        throw refuse(refusal("run.ended_outside", { status: trace.end.status }));
      const spec = readProgramSpec(trace.head.program);
      const source = spec && (await programs.source(spec));
      if (source === undefined) throw refuse(refusal("run.program_gone", { program: trace.head.program }));
      return replayProgram(deps.processes, trace, source);
    },

    programs,
  };
}

/**
 * Any writer of records may have written the trace, so nothing in it is trusted. It is read in pieces, because it may have eight
 * million bytes.
 */
async function jsonLines(text: string): Promise<string[] | undefined> {
  const lines = text.trimEnd().split("\n");
  let seen = 0;
  for (const line of lines) {
    if (!isJson(line)) return undefined;
    seen += line.length;
    if (seen < CHARS_A_TURN) continue;
    seen = 0;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return lines;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function withoutTrace(row: JsonObject): JsonObject {
  const { trace: _, ...rest } = row;
  return rest;
}

/** Refuses a spec that can never fire; if others write such a spec into the record, the record is marked instead. */
function checkSpec(record: JsonObject, spec: Json, nowMs: number): void {
  const { firing } = readTrigger({ ...record, program: "x@v1", args: {}, spec }, nowMs);
  if (firing.kind !== "never") return;
  const why = refusal(firing.marker === "unsupported_source" ? "trigger.source" : "trigger.never");
  throw refusedPart("request.invalid_field", { field: "spec" }, why, "refused");
}

function occurrences({ firing }: TriggerDefinition, nowMs: number, count: number): number[] {
  if (firing.kind === "once") return firing.atMs > nowMs ? [firing.atMs] : [];
  if (firing.kind !== "cron") return [];
  const times: number[] = [];
  for (let ms = firing.schedule.nextAfter(nowMs); ms !== undefined && times.length < count; )
    ms = firing.schedule.nextAfter(times[times.push(ms) - 1] as number);
  return times;
}
