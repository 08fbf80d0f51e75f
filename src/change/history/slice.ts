import { svcError } from "../../protocol/errors.ts";

/** Longer than this a read does not hold up the loop. */
const SLICE_MS = 6;

/** Lets other work go on between the steps of a long read. */
export interface Slices {
  /** Is it time to let others go? */
  due(): boolean;
  /** Continues after the others; ends with server.unavailable once nobody wants the answer, or the store is closed. */
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
