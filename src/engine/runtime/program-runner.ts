import type { ExecuteRun, RunOutcome, RunRequest } from "../../domain/trigger/port.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { PAGE_BYTES, PROGRAM_LIMITS } from "../../sandbox/program-limits.ts";
import type { CallOutcome, ProgramProcesses, RunEnd } from "../../sandbox/program-processes.ts";
import type { ProgramCall, ProgramStart } from "../../sandbox/program-protocol.ts";
import { createTraceRecorder, type TraceRecorder } from "../../sandbox/program-trace.ts";
import { CallFailure, CostExceeded } from "./call-error.ts";
import type { HostApi, HostCallContext } from "./host-api.ts";
import type { Spending } from "./llm-budget.ts";
import { type ProgramStore, readProgramSpec } from "./program-store.ts";
import type { Redact } from "./redact.ts";

export interface ProgramRunnerDeps {
  readonly processes: ProgramProcesses;
  readonly programs: Pick<ProgramStore, "source">;
  /** Returns the host API for a run with this spending limit. */
  hostFor(spending: Spending): HostApi;
  readonly redact: Redact;
  readonly agentSpaceId: string;
  /** Hard maxima of the configuration. */
  readonly maxFuel: number | undefined;
  readonly maxMemoryMiB: number;
  readonly newSeed: () => number;
  /** Called with every message that a trigger's run has written. */
  readonly onMessage: (triggerId: string, messageId: string) => void;
}

const NOTHING_USED = { fuel: null, memPages: null, costUsd: null } as const;

/** What a run has used so far besides fuel and memory. */
interface Account {
  readonly spending: Spending;
  tokens: { in: number; out: number };
  llmCalls: number;
  costUsd: number | null;
  calls: number;
  /** Why the run is ended, if its cost ends it. */
  exceeded: CostExceeded | undefined;
}

/** Runs a trigger's program in a process of its own, with the host API and a trace. */
export function createProgramRunner(deps: ProgramRunnerDeps): ExecuteRun {
  const run = async (request: RunRequest, source: string): Promise<RunOutcome> => {
    const start = startOf(request, source, deps);
    const recorder = createTraceRecorder(start, request.trigger.program);
    const account: Account = {
      spending: { maxCostUsd: request.trigger.limits.maxCostPerRun, heldUsd: 0 },
      tokens: { in: 0, out: 0 },
      llmCalls: 0,
      costUsd: 0,
      calls: 0,
      exceeded: undefined,
    };
    const money = new AbortController();
    const over = new AbortController();
    const signal = AbortSignal.any([request.signal, money.signal]);
    const ofCalls = AbortSignal.any([signal, over.signal]);
    const answers = answerCalls(deps, request, account, recorder, ofCalls, () => money.abort());
    try {
      const end = await deps.processes.run({ start, ...answers, signal });
      return outcomeOf(end, request, account, recorder, deps.redact);
    } finally {
      // Nobody waits for what a program asked for and did not wait for itself.
      over.abort();
    }
  };

  return async (request) => {
    const { program } = request.trigger;
    try {
      const spec = readProgramSpec(program);
      if (!spec) return failed(`${program} names no program: write <name>@v<N>`);
      const source = await deps.programs.source(spec).catch((error: Error) => {
        throw new Error(`${program} could not be read: ${error.message}`, { cause: error });
      });
      if (source === undefined) return failed(`there is no program ${program}`);
      if (Buffer.byteLength(source) > PROGRAM_LIMITS.sourceBytes) return failed("the program's source is too long");
      return await run(request, source);
    } catch (error) {
      return failed(deps.redact((error as Error).message));
    }
  };
}

function startOf(request: RunRequest, source: string, deps: ProgramRunnerDeps): ProgramStart {
  const { trigger, args, runId, scheduledAtMs, startedAtMs, lastRunAtMs } = request;
  const fuel = Math.min(
    trigger.limits.fuelPerRun ?? PROGRAM_LIMITS.fuelPerRun,
    deps.maxFuel ?? Number.MAX_SAFE_INTEGER,
  );
  const context = {
    triggerId: trigger.id,
    runId,
    scheduledAt: new Date(scheduledAtMs).toISOString(),
    lastRunAt: lastRunAtMs === undefined ? null : new Date(lastRunAtMs).toISOString(),
    spaceId: deps.agentSpaceId,
  };
  return {
    source,
    args: JSON.stringify(args),
    context: JSON.stringify(context),
    fuel,
    maxPages: (deps.maxMemoryMiB << 20) / PAGE_BYTES,
    timeoutMs: (trigger.limits.timeoutS ?? PROGRAM_LIMITS.timeoutS) * 1000,
    nowMs: startedAtMs,
    seed: deps.newSeed(),
  };
}

/** The host's side of a run: it answers, counts and traces every call, and removes secrets before anyone sees them. */
function answerCalls(
  deps: ProgramRunnerDeps,
  request: RunRequest,
  account: Account,
  recorder: TraceRecorder,
  signal: AbortSignal,
  endForMoney: () => void,
) {
  const host = deps.hostFor(account.spending);
  const context: HostCallContext = {
    agentName: request.trigger.name,
    dry: request.dry,
    signal,
    onMessage: (messageId) => deps.onMessage(request.trigger.id, messageId),
  };
  const begun = new Map<number, { atMs: number; usage?: JsonObject }>();

  const call = async ({ n, name, input }: ProgramCall): Promise<CallOutcome> => {
    account.calls++;
    const noted: { atMs: number; usage?: JsonObject } = { atMs: performance.now() };
    begun.set(n, noted);
    await request.begun;
    try {
      const { output, usage } = await host(name, JSON.parse(input) as Json, context);
      if (usage) {
        noted.usage = usage;
        countUsage(account, usage);
      }
      const text = output === null ? "" : deps.redact(JSON.stringify(output));
      if (text.length > PROGRAM_LIMITS.callBytes)
        return { error: { code: "host.reply_too_large", message: `the reply of ${name} is too large for a program` } };
      return { output: text };
    } catch (error) {
      if (error instanceof CostExceeded) {
        account.exceeded = error;
        endForMoney();
        return new Promise(() => {}); // the run ends here
      }
      if (!(error instanceof CallFailure)) throw error;
      return { error: JSON.parse(deps.redact(JSON.stringify(error.error))) };
    }
  };
  const onSettled = (one: ProgramCall, outcome: CallOutcome, nowMs: number): void => {
    const { atMs = 0, usage } = begun.get(one.n) ?? {};
    begun.delete(one.n);
    const ms = Math.round((performance.now() - atMs) * 100) / 100;
    recorder.settled({ ...one, input: deps.redact(one.input) }, outcome, nowMs, ms, usage);
  };
  return { call, onSettled };
}

function countUsage(account: Account, usage: JsonObject): void {
  const { tokens, costUsd } = usage as { tokens: { in: number; out: number }; costUsd: number | null };
  account.llmCalls++;
  account.tokens = { in: account.tokens.in + tokens.in, out: account.tokens.out + tokens.out };
  // One call of unknown price makes the sum unknown.
  account.costUsd = account.costUsd === null || costUsd === null ? null : account.costUsd + costUsd;
}

function outcomeOf(
  end: RunEnd,
  request: RunRequest,
  account: Account,
  recorder: TraceRecorder,
  redact: Redact,
): RunOutcome {
  const used = {
    costUsd: account.costUsd,
    ...(account.llmCalls > 0 ? { tokens: account.tokens } : {}),
  };
  const { calls } = account;
  if (!("engine" in end)) {
    const status = account.exceeded ? "cost_exceeded" : request.signal.aborted ? "interrupted" : "failed";
    const error = account.exceeded?.message ?? end.error;
    const trace = recorder.finish("", { status, error, fuel: null, memPages: null, calls });
    return { status, error, ...NOTHING_USED, ...used, trace };
  }
  const { status, fuel, memPages, engine } = end;
  const value = end.value === undefined ? undefined : redact(end.value);
  const error = end.error === undefined ? {} : { error: redact(end.error) };
  const trace = recorder.finish(engine, { status, ...error, fuel, memPages, calls }, value);
  return { status, ...(value === undefined ? {} : { value }), ...error, fuel, memPages, ...used, trace };
}

function failed(error: string): RunOutcome {
  return { status: "failed", error, ...NOTHING_USED };
}
