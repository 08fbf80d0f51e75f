import { STEP_NS } from "../../query/filter/filter-match.ts";
import type { ShouldStop } from "../../query/rows/row-reader.ts";

/** How long a read may hold the server's loop before it is handed to a reader. */
const INLINE_MS = 6;
/** Work that nothing can interrupt is left to a reader if it may take more steps of the matcher. */
const INLINE_STEPS = (INLINE_MS * 1_000_000) / STEP_NS;

/**
 * Runs a read on the server's own event loop; returns undefined when it did not end in time, or came to work that may take long.
 * The read must call `shouldStop` regularly. Errors of the read itself are thrown.
 */
export function onTheSpot<T>(read: (shouldStop: ShouldStop) => T): T | undefined {
  const until = performance.now() + INLINE_MS;
  let late = false;
  try {
    return read((steps) => {
      late = steps > INLINE_STEPS || performance.now() > until;
      return late;
    });
  } catch (error) {
    if (!late) throw error;
    return undefined;
  }
}
