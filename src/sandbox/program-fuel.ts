import { FUEL_SLICE } from "./program-limits.ts";
import type { ProgramStatus } from "./program-protocol.ts";

/** Thrown through the interpreter, so no `catch` of a program sees it. */
export class RunStopped extends Error {
  readonly status: ProgramStatus;
  constructor(status: ProgramStatus, message: string) {
    super(message);
    this.status = status;
  }
}

export interface Fuel {
  /** Connects the module's counter. What the interpreter used to start does not count for the program. */
  attach(counter: WebAssembly.Global): void;
  /** The module calls this when a slice is used up. It refills or throws; once it has thrown, it always throws. */
  refill(): void;
  /** Units used so far; never more than the budget. */
  used(): number;
  stopped(): RunStopped | undefined;
}

/** Counts a run's fuel in slices, and checks the clock between them. */
export function createFuel(deps: {
  budget: number;
  deadlineMs: number;
  elapsedMs(): number;
  abandoned(): boolean;
}): Fuel {
  let counter: WebAssembly.Global | undefined;
  let slice = 0;
  /** Units of completed slices. */
  let spent = 0;
  let stopped: RunStopped | undefined;

  const stop = (status: ProgramStatus, message: string): never => {
    stopped ??= new RunStopped(status, message);
    throw stopped;
  };
  const nextSlice = (): void => {
    slice = Math.min(FUEL_SLICE, deps.budget - spent);
    (counter as WebAssembly.Global).value = BigInt(slice);
  };
  return {
    attach(global) {
      counter = global;
      nextSlice();
    },
    refill() {
      if (!counter) return; // the interpreter is starting; that fuel does not count for the program
      if (stopped) throw stopped;
      spent += slice - Number(counter.value);
      slice = 0;
      counter.value = 0n;
      if (spent > deps.budget) stop("fuel_exhausted", `the run used its ${deps.budget} units of fuel`);
      if (deps.elapsedMs() > deps.deadlineMs) stop("timeout", "the run took longer than it may");
      if (deps.abandoned()) stop("timeout", "nobody waits for the run any more");
      nextSlice();
    },
    used: () => Math.min(deps.budget, spent + (counter ? slice - Number(counter.value) : 0)),
    stopped: () => stopped,
  };
}
