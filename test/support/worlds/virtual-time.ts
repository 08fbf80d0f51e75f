/** Time that goes on only when nothing is left to be done at the present moment. */
import type { Clock } from "../../../src/base/clock.ts";
import type { Timers } from "../../../src/base/timers.ts";
import { loopTurns } from "../loop-turns.ts";

/** Turns of the event loop in which nothing happened, after which time goes on. */
const QUIET_TURNS = 2;

export interface VirtualTime extends Timers {
  readonly clock: Clock;
  /** Something happened that time has to wait for: what follows from it has a few turns of the event loop. */
  stir(): void;
  /** Goes on until a moment. */
  runFor(ms: number): Promise<void>;
  /** Goes on until it holds, for so long at most. Answers whether it does. */
  runUntil(holds: () => boolean, limitMs: number): Promise<boolean>;
  /** Goes on until the promise settles; throws after an hour. */
  runWhile<T>(work: Promise<T>): Promise<T>;
}

interface Due {
  readonly atMs: number;
  readonly no: number;
  readonly run: () => void;
}

/** `idle` resolves when what runs beside the timers, as commits do, has nothing more to do. */
export function createVirtualTime(idle: () => Promise<void>): VirtualTime {
  let nowMs = 0;
  let made = 0;
  let stirred = 0;
  const waiting: Due[] = [];

  const after = (ms: number, run: () => void): (() => void) => {
    const due: Due = { atMs: nowMs + Math.max(0, ms), no: made++, run };
    stirred++;
    const place = waiting.findLastIndex((other) => other.atMs <= due.atMs) + 1;
    waiting.splice(place, 0, due);
    return () => {
      const at = waiting.indexOf(due);
      if (at >= 0) waiting.splice(at, 1);
    };
  };
  /** Whatever follows from what has happened so far is done. */
  const untilIdle = async (): Promise<void> => {
    for (let quiet = 0; quiet < QUIET_TURNS; ) {
      const before = stirred;
      await idle();
      await loopTurns();
      quiet = stirred === before ? quiet + 1 : 0;
    }
  };
  /** Goes on to the next timer, if it is due by then. */
  const step = async (limitMs: number): Promise<boolean> => {
    await untilIdle();
    const next = waiting[0];
    if (!next || next.atMs > limitMs) return false;
    waiting.shift();
    nowMs = next.atMs;
    stirred++;
    next.run();
    return true;
  };
  const runUntil = async (holds: () => boolean, limitMs: number): Promise<boolean> => {
    const endMs = nowMs + limitMs;
    while (!holds()) {
      if (await step(endMs)) continue;
      nowMs = endMs;
      return holds();
    }
    return true;
  };

  return {
    clock: { nowMs: () => 1_800_000_000_000 + nowMs },
    elapsedMs: () => nowMs,
    after,
    sleep: (ms) => new Promise((resolve) => after(ms, resolve)),
    stir: () => void stirred++,
    runUntil,
    runFor: async (ms) => void (await runUntil(() => false, ms)),
    async runWhile(work) {
      let isDone = false;
      const done = () => {
        isDone = true;
        stirred++;
      };
      work.then(done, done);
      if (!(await runUntil(() => isDone, 60 * 60_000))) throw new Error("an hour passed, and it goes on");
      return work;
    },
  };
}
