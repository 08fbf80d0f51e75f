import type { Clock } from "../../base/clock.ts";
import type { Service } from "../../base/service.ts";
import type { AgentRecords } from "./agent-records.ts";

const TICK_MS = 1_000;

interface TickerDeps {
  readonly clock: Clock;
  readonly records: Pick<AgentRecords, "onChanged">;
  /** A trigger's record has changed. */
  changed(triggerId: string): void;
  /** Fires what is due. */
  tick(): void;
  everySecond(): void;
}

/**
 * Ticks as each second begins, and soon after a record has changed, so that an edit takes effect at once. Ticks at another point
 * of the second would fire late by that much, and where it is near the second's end, leave out a second now and then.
 */
export function createTicker({ clock, records, changed, tick, everySecond }: TickerDeps): Service {
  const ends: (() => void)[] = [];
  let soon: ReturnType<typeof setImmediate> | undefined;
  let next: ReturnType<typeof setTimeout> | undefined;
  const second = (): void => {
    next = setTimeout(second, TICK_MS - (clock.nowMs() % TICK_MS));
    tick();
    everySecond();
  };
  const recordChanged = (triggerId: string): void => {
    changed(triggerId);
    soon ??= setImmediate(() => {
      soon = undefined;
      tick();
    });
  };
  return {
    name: "triggers",
    start() {
      ends.push(records.onChanged(recordChanged), () => clearTimeout(next));
      second();
    },
    stop() {
      for (const end of ends) end();
      if (soon) clearImmediate(soon);
    },
  };
}
