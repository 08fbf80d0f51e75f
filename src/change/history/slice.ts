import { svcError } from "../../protocol/errors.ts";

/** A read does not hold up the event loop for longer than this. */
const SLICE_MS = 6;

/** Lets other work go on between the steps of a long read. */
export interface Slices {
  /** Whether it is time to let other work run. */
  due(): boolean;
  /** Resolves after other work has run; rejects with server.unavailable once nobody wants the answer, or the store is closed. */
  pause(): Promise<void>;
}

export function createSlices(isOver: () => boolean): Slices {
  let until = performance.now() + SLICE_MS;
  return {
    due: () => performance.now() >= until,
    async pause() {
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (isOver()) throw svcError("server.unavailable");
      until = performance.now() + SLICE_MS;
    },
  };
}
