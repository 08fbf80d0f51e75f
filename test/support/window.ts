/** A client's copy of a live window: the snapshot with every `changes` frame applied. */
import type { Row } from "./client.ts";
import type { ChangesEntry } from "./sse-stream.ts";

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
