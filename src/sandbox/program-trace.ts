import { createHash } from "node:crypto";
import type { Json } from "../protocol/json.ts";
import type { CallOutcome } from "./program-processes.ts";
import type { CallError, ProgramCall, ProgramStart } from "./program-protocol.ts";

/** The first line of a trace: everything on which a run depends besides the answers to its calls. */
interface TraceHead {
  readonly v: 1;
  /** SHA-256 of the source and of the interpreter with its prelude. */
  readonly source: string;
  readonly engine: string;
  readonly program: string;
  readonly args: Json;
  readonly context: Json;
  readonly fuel: number;
  readonly maxPages: number;
  readonly nowMs: number;
  readonly seed: number;
}

/** An answered call, in the order of the answers; a line of the log is where it was written. */
export interface TraceCall {
  readonly n: number;
  readonly name: string;
  readonly input: Json;
  readonly output?: Json;
  readonly error?: CallError;
  /** How long the answer took. */
  readonly ms: number;
  /** The time that the program's clock showed from then on. */
  readonly nowMs: number;
  readonly usage?: Json;
}

/** The last line. */
interface TraceEnd {
  readonly end: {
    readonly status: string;
    readonly error?: string;
    readonly fuel: number | null;
    readonly memPages: number | null;
    /** How many calls the program made, answered or not. */
    readonly calls: number;
    readonly value?: Json;
    /** Set when the trace was cut at its limit; such a run cannot be replayed. */
    readonly truncated?: true;
  };
}

export interface Trace {
  readonly head: TraceHead;
  readonly calls: readonly TraceCall[];
  readonly end: TraceEnd["end"];
}

/** Most bytes of a trace; further calls are not kept. */
const TRACE_BYTES = 8 << 20;

export interface TraceRecorder {
  settled(call: ProgramCall, outcome: CallOutcome, nowMs: number, ms: number, usage?: Json): void;
  /** The whole trace as JSON lines; `value` is JSON. */
  finish(engine: string, end: Omit<TraceEnd["end"], "truncated" | "value">, value?: string): string;
}

export function createTraceRecorder(start: ProgramStart, program: string, limitBytes = TRACE_BYTES): TraceRecorder {
  const lines: string[] = [];
  let size = 0;
  let truncated = false;
  return {
    settled(call, outcome, nowMs, ms, usage) {
      if (truncated) return;
      // The texts are JSON already, so they are concatenated instead of parsed and written again.
      const answer =
        "error" in outcome ? `"error":${JSON.stringify(outcome.error)}` : `"output":${outcome.output || "null"}`;
      const rest = `"ms":${ms},"nowMs":${nowMs}${usage === undefined ? "" : `,"usage":${JSON.stringify(usage)}`}`;
      const line = `{"n":${call.n},"name":${JSON.stringify(call.name)},"input":${call.input},${answer},${rest}}`;
      size += line.length;
      if (size > limitBytes) truncated = true;
      else lines.push(line);
    },
    finish(engine, end, value) {
      const head: TraceHead = {
        v: 1,
        source: hashOf(start.source),
        engine,
        program,
        args: JSON.parse(start.args) as Json,
        context: JSON.parse(start.context) as Json,
        fuel: start.fuel,
        maxPages: start.maxPages,
        nowMs: start.nowMs,
        seed: start.seed,
      };
      const ended = JSON.stringify({ ...end, ...(truncated ? { truncated } : {}) });
      const last = value === undefined ? ended : `${ended.slice(0, -1)},"value":${value}}`;
      return `${[JSON.stringify(head), ...lines, `{"end":${last}}`].join("\n")}\n`;
    },
  };
}

/** Parses a trace; returns undefined for a text that is none. */
export function parseTrace(text: string): Trace | undefined {
  try {
    const lines = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Json);
    const head = lines[0] as unknown as TraceHead;
    const last = lines.at(-1) as unknown as TraceEnd;
    if (head?.v !== 1 || typeof last?.end !== "object") return undefined;
    return { head, calls: lines.slice(1, -1) as unknown as TraceCall[], end: last.end };
  } catch {
    return undefined;
  }
}

export function hashOf(text: string | Uint8Array): string {
  return createHash("sha256").update(text).digest("hex");
}
