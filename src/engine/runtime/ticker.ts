import type { Service } from "../../base/service.ts";
import type { AgentRecords } from "./agent-records.ts";

const TICK_MS = 1_000;

interface TickerDeps {
  readonly records: Pick<AgentRecords, "onChanged">;
  /** A trigger's record has changed. */
  changed(triggerId: string): void;
  /** Fires what is due. */
  tick(): void;
  everySecond(): void;
}

/** Ticks every second, and soon after a record has changed, so that an edit takes effect at once. */
export function createTicker({ records, changed, tick, everySecond }: TickerDeps): Service {
  const ends: (() => void)[] = [];
  let soon: ReturnType<typeof setImmediate> | undefined;
  const second = (): void => {
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
      const timer = setInterval(second, TICK_MS);
      ends.push(records.onChanged(recordChanged), () => clearInterval(timer));
      second();
    },
    stop() {
      for (const end of ends) end();
      if (soon) clearImmediate(soon);
    },
  };
}
