import type { Json } from "../protocol/json.ts";
import type { CallOutcome, ProgramProcesses, RunEnd } from "./program-processes.ts";
import type { ProgramCall } from "./program-protocol.ts";
import { hashOf, type Trace, type TraceCall } from "./program-trace.ts";

/** Where a replay first differs from its trace. */
interface ReplayDifference {
  /** The number of the first call that differs; absent when all calls were the same but the end was not. */
  readonly n?: number;
  readonly what: "call" | "missing call" | "new call" | "end";
  readonly expected?: Json;
  readonly got?: Json;
}

export interface ReplayResult {
  /** Whether the same calls led to the same end with the same fuel. */
  readonly same: boolean;
  readonly difference?: ReplayDifference;
  readonly status: string;
  readonly value?: Json;
  readonly error?: string;
  readonly fuel: number | null;
  readonly sourceChanged: boolean;
  readonly engineChanged: boolean;
}

/** Time limit of a replay, in which every call is answered at once. */
const REPLAY_MS = 120_000;

/**
 * Runs a program again with the answers of a trace: the same clock, the same random numbers, the same answers in the same
 * order. No call has any effect. The first call that differs ends the replay.
 */
export async function replayProgram(processes: ProgramProcesses, trace: Trace, source: string): Promise<ReplayResult> {
  const { head, calls, end } = trace;
  const recorded = new Map(calls.map((call) => [call.n, call]));
  const giveUp = new AbortController();
  let difference: ReplayDifference | undefined;
  const differs = (found: ReplayDifference): void => {
    difference ??= found;
    giveUp.abort();
  };
  const answers = createAnswers(calls);
  const replayed = await processes.run({
    start: {
      source,
      args: JSON.stringify(head.args),
      context: JSON.stringify(head.context),
      fuel: head.fuel,
      maxPages: head.maxPages,
      timeoutMs: REPLAY_MS,
      nowMs: head.nowMs,
      seed: head.seed,
    },
    signal: giveUp.signal,
    onSettled: answers.given,
    call: (call) => {
      const known = recorded.get(call.n);
      const fault = compareCall(call, known, end.calls);
      if (fault) differs(fault);
      return answers.answer(call, known);
    },
  });
  if (!difference) difference = compareEnd(replayed, trace, answers.made());
  const { fuel, value, error } =
    "fuel" in replayed ? replayed : { fuel: null, value: undefined, error: replayed.error };
  return {
    same: difference === undefined,
    ...(difference ? { difference } : {}),
    status: replayed.status,
    ...(value === undefined ? {} : { value: JSON.parse(value) as Json }),
    ...(error === undefined ? {} : { error }),
    fuel,
    sourceChanged: hashOf(source) !== head.source,
    engineChanged: "engine" in replayed && replayed.engine !== head.engine,
  };
}

/** Answers calls in the order of the trace: an answer waits until all earlier ones were given. */
function createAnswers(calls: readonly TraceCall[]) {
  const waiting = new Map<number, (outcome: CallOutcome & { nowMs: number }) => void>();
  const made = new Set<number>();
  let next = 0;
  let underWay = false;
  const giveNext = (): void => {
    const one = calls[next];
    const give = one && waiting.get(one.n);
    if (give && !underWay) {
      next++;
      underWay = true;
      const outcome: CallOutcome = one.error ? { error: one.error } : { output: textOf(one.output) };
      give({ ...outcome, nowMs: one.nowMs });
    }
  };
  return {
    made: (): ReadonlySet<number> => made,
    /** Notes that the program got the last answer. */
    given(): void {
      underWay = false;
      giveNext();
    },
    /** Never resolves for a call that was not answered in the trace either. */
    answer(call: ProgramCall, known: TraceCall | undefined): Promise<CallOutcome & { nowMs?: number }> {
      made.add(call.n);
      const { promise, resolve } = Promise.withResolvers<CallOutcome & { nowMs: number }>();
      if (known) waiting.set(call.n, resolve);
      giveNext();
      return promise;
    },
  };
}

/** `log` and calls without an answer have null in the trace; the program got nothing then. */
function textOf(output: Json | undefined): string {
  return output === undefined || output === null ? "" : JSON.stringify(output);
}

function compareCall(call: ProgramCall, known: TraceCall | undefined, calls: number): ReplayDifference | undefined {
  const got = { name: call.name, input: JSON.parse(call.input) as Json };
  if (!known) return call.n < calls ? undefined : { n: call.n, what: "new call", got };
  const expected = { name: known.name, input: known.input };
  return Bun.deepEquals(got, expected) ? undefined : { n: call.n, what: "call", expected, got };
}

function compareEnd(replayed: RunEnd, { calls, end }: Trace, made: ReadonlySet<number>): ReplayDifference | undefined {
  const missing = calls.filter(({ n }) => !made.has(n)).sort((one, other) => one.n - other.n)[0];
  if (missing) {
    const expected = { name: missing.name, input: missing.input };
    return { n: missing.n, what: "missing call", expected };
  }
  const value = "value" in replayed && replayed.value !== undefined ? (JSON.parse(replayed.value) as Json) : undefined;
  const fuel = "fuel" in replayed ? replayed.fuel : null;
  const got = { status: replayed.status, fuel, ...(value === undefined ? {} : { value }) };
  const expected = { status: end.status, fuel: end.fuel, ...(end.value === undefined ? {} : { value: end.value }) };
  return Bun.deepEquals(got, expected) ? undefined : { what: "end", expected, got };
}
