/** A process registry over a bus that shows what was published. */

import type { BusEvent, EventBus, EventInput } from "../../../src/domain/event/port.ts";
import { createProcessRegistry } from "../../../src/domain/process/process-registry.ts";
import { SvcError } from "../../../src/protocol/errors.ts";
import type { ProcessStartBody } from "../../../src/protocol/event.ts";
import type { Json } from "../../../src/protocol/json.ts";

export const ME = "Ame";
export const OTHER = "Aother";

/** A bus that shows what was published, and lets others publish too. */
export function createWorld() {
  const clock = { ms: 1_700_000_000_500, nowMs: () => clock.ms };
  const observers = new Set<(event: BusEvent) => void>();
  const published: EventInput[] = [];
  const followed: string[] = [];
  const from = (identity: string, event: EventInput) => {
    for (const observe of observers) observe({ ...event, sender: { identity, self: identity === ME } });
  };
  const gates: Promise<void>[] = [];
  const bus: EventBus = {
    async publish(input) {
      await gates.shift();
      if (input.spaceId === "gone") throw new SvcError("space.not_found");
      published.push(input);
      from(ME, input);
      return { subscribers: 3 };
    },
    observe(observer) {
      observers.add(observer);
      return () => void observers.delete(observer);
    },
    follow(audience, prefix) {
      const name = `${prefix} ${audience.scope === "space" ? audience.spaceId : audience.scope}`;
      followed.push(name);
      return () => void followed.splice(followed.indexOf(name), 1);
    },
  };
  const registry = createProcessRegistry({ accountId: ME, bus, clock });
  const start = (fields: Partial<ProcessStartBody> = {}) =>
    registry.start({ id: "p1", kind: "export", title: "Exporting", scope: "device", ...fields });
  return { registry, clock, published, from, start, gates, observers, followed };
}

export const frame = (type: string, id: string, data: Json, more: Partial<EventInput> = {}): EventInput => ({
  type: `process.${type}`,
  scope: "account",
  target: id,
  data,
  ...more,
});
