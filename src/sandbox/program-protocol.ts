/**
 * The messages between the server and the process that runs programs: one JSON object per line, over the child's standard
 * input and output. The child runs one program at a time.
 */
import type { Json } from "../protocol/json.ts";

/** How a run may end. The server adds what only it knows (cost, cancelling, a lost process). */
export type ProgramStatus = "ok" | "failed" | "timeout" | "fuel_exhausted" | "memory_exhausted";

export interface ProgramStart {
  readonly source: string;
  /** JSON of the program's arguments and of its context. */
  readonly args: string;
  readonly context: string;
  readonly fuel: number;
  /** Most memory pages of 64 KiB. */
  readonly maxPages: number;
  readonly timeoutMs: number;
  /** Unix milliseconds at which the program's clock starts. */
  readonly nowMs: number;
  /** Seed of its random numbers: 32 bits. */
  readonly seed: number;
}

export interface ProgramEnd {
  readonly status: ProgramStatus;
  /** JSON of the value that the program returned, with status ok. */
  readonly value?: string;
  readonly error?: string;
  readonly fuel: number;
  readonly memPages: number;
}

/** A call that the program made: `n` is its number in the run, from 0. */
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

/** The answer to a call. It sets the program's clock to `nowMs`. */
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

/** The function with which a program writes into its trace. It has no answer, so nothing waits for it. */
export const LOG_CALL = "log";
