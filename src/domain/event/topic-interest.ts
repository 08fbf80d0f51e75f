import { fail } from "../../protocol/errors.ts";
import { LIMITS } from "../../protocol/limits.ts";
import type { EventFilter } from "./event-filter.ts";
import { coverOf, patternsOf } from "./event-topic.ts";
import type { EventRoom, NetworkEvents } from "./port.ts";

/** The topic patterns that streams want from the rooms of the network, each room's within its budget. */
export interface TopicInterest {
  /**
   * Adds what a stream wants; the result takes it back. All rooms or none.
   * Errors: events.too_many_patterns {spaceId, limit}.
   */
  add(filter: EventFilter): () => void;
  /** What observers are built from is wanted from this room, streams or not, beside its budget. Idempotent. */
  follow(room: EventRoom): void;
  /** The room ended: should it come back, it is to be followed, and what streams want of it is told, anew. */
  unfollow(room: EventRoom): void;
  /** Tells a network that has come up what every room wants. */
  announceAll(): void;
}

/** The registry of processes shows what other devices and members run. */
const OBSERVED = "ev/process/>";

const keyOf = (room: EventRoom): string => (room.scope === "space" ? room.spaceId : "");

type PatternCounts = Map<string, number>;

export function createTopicInterest(network: () => NetworkEvents | undefined): TopicInterest {
  interface Entry {
    readonly room: EventRoom;
    readonly counts: PatternCounts;
    announced: string;
    followed: boolean;
  }
  const roomsByKey = new Map<string, Entry>();
  const entryOf = (room: EventRoom): Entry => {
    const key = keyOf(room);
    const known = roomsByKey.get(key) ?? { room, counts: new Map<string, number>(), announced: "", followed: false };
    roomsByKey.set(key, known);
    return known;
  };

  const announce = (key: string): void => {
    const entry = roomsByKey.get(key)!;
    const cover = coverOf(new Set([...entry.counts.keys(), ...(entry.followed ? [OBSERVED] : [])])).sort();
    const text = cover.join("\n");
    if (text !== entry.announced) network()?.watch(entry.room, cover);
    entry.announced = text;
    if (entry.counts.size === 0 && !entry.followed) roomsByKey.delete(key);
  };

  const change = (key: string, patterns: readonly string[], by: 1 | -1): void => {
    const { counts } = roomsByKey.get(key)!;
    for (const pattern of patterns) {
      const count = (counts.get(pattern) ?? 0) + by;
      if (count > 0) counts.set(pattern, count);
      else counts.delete(pattern);
    }
  };

  return {
    follow(room) {
      const entry = entryOf(room);
      if (entry.followed) return;
      entry.followed = true;
      announce(keyOf(room));
    },

    unfollow(room) {
      const entry = entryOf(room);
      entry.followed = false;
      entry.announced = "";
      if (entry.counts.size === 0) roomsByKey.delete(keyOf(room));
    },

    announceAll() {
      for (const [key, entry] of roomsByKey) {
        entry.announced = "";
        announce(key);
      }
    },

    add(filter) {
      const wanted = roomsOf(filter).map((room) => {
        const key = keyOf(room);
        const counts = roomsByKey.get(key)?.counts ?? new Map<string, number>();
        return { key, room, patterns: withinBudget(room, counts, filter) };
      });
      for (const { key, room, patterns } of wanted) {
        entryOf(room);
        change(key, patterns, 1);
        announce(key);
      }
      let open = true;
      return () => {
        if (!open) return;
        open = false;
        for (const { key, patterns } of wanted) {
          change(key, patterns, -1);
          announce(key);
        }
      };
    },
  };
}

function roomsOf({ scopes, spaceIds }: EventFilter): EventRoom[] {
  const rooms: EventRoom[] = [...spaceIds].map((spaceId) => ({ scope: "space", spaceId }));
  if (scopes.has("account")) rooms.push({ scope: "account" });
  return rooms;
}

/** The narrowest patterns for the filter with which the room stays within its budget; the account's room has none. */
function withinBudget(room: EventRoom, counts: PatternCounts, filter: EventFilter): string[] {
  for (const byTarget of [true, false]) {
    const patterns = patternsOf(filter, byTarget);
    const all = new Set([...counts.keys(), ...patterns]);
    if (coverOf(all).length <= LIMITS.patternsPerSpace) return patterns;
    if (!byTarget && room.scope === "account") return patterns;
  }
  throw fail(
    "events.too_many_patterns",
    { spaceId: room.scope === "space" ? room.spaceId : undefined, limit: LIMITS.patternsPerSpace },
    `A space takes ${LIMITS.patternsPerSpace} patterns of event types; close streams or use wider patterns such as x.*`,
  );
}
