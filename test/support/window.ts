/** A client's copy of a live window: the snapshot with every `changes` frame applied. */
import type { Client, JsonObject, Row } from "./server/client.ts";
import { type Collection, createCollection } from "./server/fixtures.ts";
import type { ChangesEntry, SseStream } from "./server/sse-stream.ts";

export type Window = Map<string, Row>;

/** Applies the entries in their order. Throws when an entry contradicts what the window holds. */
export function applyChanges(window: Window, entries: readonly ChangesEntry[]): void {
  for (const { added = [], updated = [], removed = [] } of entries) {
    for (const { id } of removed) {
      if (!window.delete(id)) throw new Error(`removed ${id}, which the window does not hold`);
    }
    for (const { id, doc } of added) {
      if (window.has(id)) throw new Error(`added ${id}, which the window already holds`);
      window.set(id, doc);
    }
    for (const { id, doc } of updated) {
      if (!window.has(id)) throw new Error(`updated ${id}, which the window does not hold`);
      window.set(id, doc);
    }
  }
}

/** A collection with so many records `r0`, `r1`, …, numbered in `n`. */
export async function createNumbered(client: Client, spaceId: string, count: number): Promise<Collection> {
  const items = await createCollection(client, spaceId);
  if (count > 0)
    await items.upsert(Array.from({ length: count }, (_, i) => ({ id: `r${i}`, fields: { n: i, s: "in" } })));
  return items;
}

/** A live window on a collection that never drifts. */
export const subscribeTo = (client: Client, items: Collection, body: JsonObject = {}): Promise<SseStream> =>
  client.stream("POST", `${items.path}/query/subscribe`, { ...items.target, driftBudgetPercent: 100, ...body });

export const idsOf = (entries: readonly { id: string }[] | undefined): string[] => (entries ?? []).map(({ id }) => id);
