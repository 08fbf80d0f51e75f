import { refusedAs } from "../../protocol/errors.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { EventFilter } from "./event-filter.ts";
import { coverOf, patternsOf } from "./event-topic.ts";
import type { EventRoom, NetworkEvents } from "./port.ts";

/**
 * Keeps the topic patterns that are wanted from the rooms of the network: by streams, within each room's budget, and by the
 * service.
 */
export interface TopicInterest {
  /**
   * Adds what a stream wants, in all rooms or none; the result removes it again. Errors: events.too_many_patterns {spaceId,
   * limit}.
   */
  add(filter: EventFilter): () => void;
  /** Adds what the service itself wants of a room, outside the budget; the result removes it again. */
  follow(room: EventRoom, pattern: string): () => void;
  /** Announces to a network that has come up what every room wants. */
  announceAll(): void;
}

type PatternCounts = Map<string, number>;

interface Entry {
  readonly room: EventRoom;
  /** What streams want. */
  readonly counts: PatternCounts;
  /** What the service wants. */
  readonly followed: PatternCounts;
  announced: string;
}

export function createTopicInterest(network: () => NetworkEvents | undefined): TopicInterest {
  const roomsByKey = new Map<string, Entry>();

  const entryOf = (room: EventRoom): Entry => {
    const key = keyOf(room);
    const entry = roomsByKey.get(key) ?? { room, counts: new Map(), followed: new Map(), announced: "" };
    roomsByKey.set(key, entry);
    return entry;
  };

  const announce = (entry: Entry): void => {
    const cover = coverOf(new Set([...entry.counts.keys(), ...entry.followed.keys()])).sort();
    const text = cover.join("\n");
    if (text !== entry.announced) network()?.watch(entry.room, cover);
    entry.announced = text;
    if (cover.length === 0) roomsByKey.delete(keyOf(entry.room));
  };

  /** Adds patterns to those that a room's streams, or the service, want; the result removes them again, once. */
  const want = (room: EventRoom, by: "counts" | "followed", patterns: readonly string[]): (() => void) => {
    const change = (step: 1 | -1): void => {
      const entry = entryOf(room);
      for (const pattern of patterns) {
        const count = (entry[by].get(pattern) ?? 0) + step;
        if (count > 0) entry[by].set(pattern, count);
        else entry[by].delete(pattern);
      }
      announce(entry);
    };
    change(1);
    let wanted = true;
    return () => {
      if (wanted) change(-1);
      wanted = false;
    };
  };

  return {
    announceAll() {
      for (const entry of roomsByKey.values()) {
        entry.announced = "";
        announce(entry);
      }
    },

    add(filter) {
      const wanted = roomsOf(filter).map((room) => {
        const counts = roomsByKey.get(keyOf(room))?.counts ?? new Map<string, number>();
        return { room, patterns: withinBudget(room, counts, filter) };
      });
      const ends = wanted.map(({ room, patterns }) => want(room, "counts", patterns));
      return () => {
        for (const end of ends) end();
      };
    },

    follow: (room, pattern) => want(room, "followed", [pattern]),
  };
}

const keyOf = (room: EventRoom): string => (room.scope === "space" ? room.spaceId : "");

function roomsOf({ scopes, spaceIds }: EventFilter): EventRoom[] {
  const rooms: EventRoom[] = [...spaceIds].map((spaceId) => ({ scope: "space", spaceId }));
  if (scopes.has("account")) rooms.push({ scope: "account" });
  return rooms;
}

/** Returns the narrowest patterns for the filter that keep the room within its budget; the account's room has no budget. */
function withinBudget(room: EventRoom, counts: PatternCounts, filter: EventFilter): string[] {
  for (const byTarget of [true, false]) {
    const patterns = patternsOf(filter, byTarget);
    const all = new Set([...counts.keys(), ...patterns]);
    if (coverOf(all).length <= LIMITS.patternsPerSpace) return patterns;
    if (!byTarget && room.scope === "account") return patterns;
  }
  throw refusedAs(
    "events.too_many_patterns",
    { spaceId: room.scope === "space" ? room.spaceId : undefined, limit: LIMITS.patternsPerSpace },
    refusal("event.patterns"),
  );
}
