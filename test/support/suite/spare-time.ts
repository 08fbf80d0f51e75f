/** Whether the machine has time and memory for another process of the suite. */
import { cpus, freemem } from "node:os";

/** How much of the processors' time was used. */
interface Use {
  readonly atMs: number;
  readonly busyMs: number;
}

/** Shorter spans tell more of the moment than of what runs. */
const SPAN_MS = 1_000;
/** Processors that are used more than this have no time for more: it would only make what runs wait. */
const FULL_SHARE = 0.85;
/** More than any one test file takes. */
const ROOM_BYTES = 2e9;

/** Answers whether the processors had time left since it answered last; no sooner than a second after that. */
export function createSpareTime(readUse: () => Use = processorUse, processors = cpus().length): () => boolean {
  let last = readUse();
  return () => {
    const now = readUse();
    if (now.atMs - last.atMs < SPAN_MS) return false;
    const share = usedShare(last, now, processors);
    last = now;
    return share < FULL_SHARE && freemem() > ROOM_BYTES;
  };
}

/** The share of the processors' time that was used between two moments, 0 to 1. */
export function usedShare(from: Use, to: Use, processors = cpus().length): number {
  return (to.busyMs - from.busyMs) / ((to.atMs - from.atMs) * processors);
}

/** How long the processors of the machine have computed since it started. */
export function processorUse(): Use {
  const busyMs = cpus().reduce((total, { times }) => total + times.user + times.nice + times.sys + times.irq, 0);
  return { atMs: performance.now(), busyMs };
}
