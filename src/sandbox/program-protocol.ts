/**
 * What the server and the process that runs programs say to each other: one JSON object a line, over the child's
 * standard input and output. The child runs one program at a time.
 */
import type { Json } from "../protocol/json.ts";

/** How a run may end; what only the server knows (cost, cancelling, a lost process) is added there. */
export type ProgramStatus = "ok" | "failed" | "timeout" | "fuel_exhausted" | "memory_exhausted";

export interface ProgramStart {
  readonly source: string;
  /** JSON of the program's arguments and of its context. */
  readonly args: string;
  readonly context: string;
  readonly fuel: number;
  /** Most pages of 64 KiB. */
  readonly maxPages: number;
  readonly timeoutMs: number;
  /** Unix milliseconds that the program's clock begins with. */
  readonly nowMs: number;
  /** Where its random numbers come from: 32 bits. */
  readonly seed: number;
}

export interface ProgramEnd {
  readonly status: ProgramStatus;
  /** JSON of what the program returned, with status ok. */
  readonly value?: string;
  readonly error?: string;
  readonly fuel: number;
  readonly memPages: number;
}

/** A call that the program has made: its number in the run, from 0. */
export interface ProgramCall {
  readonly n: number;
  readonly name: string;
  /** JSON. */
  readonly input: string;
}

export interface CallError {
  readonly code: string;
  readonly message: string;
  readonly details?: Json;
}

/** The answer to a call. The program's clock goes to `nowMs`. */
export interface CallSettled {
  readonly n: number;
  /** JSON. */
  readonly output?: string;
  readonly error?: CallError;
  readonly nowMs: number;
}

export type ToChild = { start: ProgramStart } | { settle: CallSettled };
/** `ready`: SHA-256 of the interpreter with its prelude. */
export type FromChild = { ready: string } | { call: ProgramCall } | { end: ProgramEnd };

/** The function by which a program writes into its trace. It has no answer: nothing waits for it. */
export const LOG_CALL = "log";
