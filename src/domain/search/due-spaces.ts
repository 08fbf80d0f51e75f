import type { SpaceId } from "../../base/ids.ts";

/** Writes that follow each other closely are indexed together. */
const DEBOUNCE_MS = 250;
/**
 * The process that indexes starts so long after the write that needs it, unless a search or a larger write starts it: what is over
 * by then, as a program's tests are, does without it.
 */
const CHILD_START_MS = 2_000;
/** Records whose change is worth starting it at once: a search waits only for a little more. */
const WORTH_A_START = 100;

/** Spaces in which something was committed, until `index` is called for them. */
export function createDueSpaces(index: (spaceId: SpaceId) => void) {
  const due = new Map<SpaceId, { records: number; isSoon: boolean; timer: ReturnType<typeof setTimeout> }>();
  let closed = false;

  /** So many records of a space were changed; `isRunning` says whether the process that indexes is there. */
  const committed = (spaceId: SpaceId, records: number, isRunning: boolean): void => {
    if (closed) return;
    const before = due.get(spaceId);
    const all = (before?.records ?? 0) + records;
    const isSoon = isRunning || all >= WORTH_A_START;
    if (before) before.records = all;
    if (before && (before.isSoon || !isSoon)) return;
    clearTimeout(before?.timer);
    const timer = setTimeout(
      () => {
        due.delete(spaceId);
        index(spaceId);
      },
      isSoon ? DEBOUNCE_MS : CHILD_START_MS,
    );
    timer.unref();
    due.set(spaceId, { records: all, isSoon, timer });
  };

  const forget = (spaceId: SpaceId): void => {
    clearTimeout(due.get(spaceId)?.timer);
    due.delete(spaceId);
  };

  return {
    committed,
    /** A space's index is behind, whether the process is there or not. */
    soon: (spaceId: SpaceId): void => committed(spaceId, 0, true),
    forget,
    close(): void {
      closed = true;
      for (const spaceId of [...due.keys()]) forget(spaceId);
    },
  };
}
