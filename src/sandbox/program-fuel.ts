import { FUEL_SLICE } from "./program-limits.ts";
import type { ProgramStatus } from "./program-protocol.ts";

/** Thrown through the interpreter: no `catch` of a program sees it. */
export class RunStopped extends Error {
  readonly status: ProgramStatus;
  constructor(status: ProgramStatus, message: string) {
    super(message);
    this.status = status;
  }
}

export interface Fuel {
  /** Takes over the module's counter. What the interpreter used to start is not the program's. */
  attach(counter: WebAssembly.Global): void;
  /** Called by the module whenever a slice is used up. Fills up or throws; once it has thrown it always throws. */
  refill(): void;
  /** Units used so far, never more than the budget. */
  used(): number;
  stopped(): RunStopped | undefined;
}

/** Counts a run's fuel in slices; between them the clock is looked at. */
export function createFuel(deps: {
  budget: number;
  deadlineMs: number;
  elapsedMs(): number;
  abandoned(): boolean;
}): Fuel {
  let counter: WebAssembly.Global | undefined;
  let slice = 0;
  /** Units of slices that are over. */
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
      if (!counter) return; // the interpreter starts; its fuel is not the program's
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
