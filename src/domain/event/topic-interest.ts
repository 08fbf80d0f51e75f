import { refusedAs } from "../../protocol/errors.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { EventFilter } from "./event-filter.ts";
import { coverOf, patternsOf } from "./event-topic.ts";
import type { EventAudience, NetworkEvents } from "./port.ts";

/**
 * Keeps the topic patterns that are wanted from the audiences of the network: by streams, within each audience's budget, and by the
 * service.
 */
export interface TopicInterest {
  /**
   * Adds what a stream wants, in all audiences or none; the result removes it again. Errors: events.too_many_patterns {spaceId,
   * limit}.
   */
  add(filter: EventFilter): () => void;
  /** Adds what the service itself wants of an audience, outside the budget; the result removes it again. */
  follow(audience: EventAudience, pattern: string): () => void;
}

type PatternCounts = Map<string, number>;

interface Entry {
  readonly audience: EventAudience;
  /** What streams want. */
  readonly counts: PatternCounts;
  /** What the service wants. */
  readonly followed: PatternCounts;
  announced: string;
}

export function createTopicInterest(network: Pick<NetworkEvents, "watch">): TopicInterest {
  const entriesByKey = new Map<string, Entry>();

  const entryOf = (audience: EventAudience): Entry => {
    const key = keyOf(audience);
    const entry = entriesByKey.get(key) ?? { audience, counts: new Map(), followed: new Map(), announced: "" };
    entriesByKey.set(key, entry);
    return entry;
  };

  const announce = (entry: Entry): void => {
    const cover = coverOf(new Set([...entry.counts.keys(), ...entry.followed.keys()])).sort();
    const text = cover.join("\n");
    if (text !== entry.announced) network.watch(entry.audience, cover);
    entry.announced = text;
    if (cover.length === 0) entriesByKey.delete(keyOf(entry.audience));
  };

  /** Adds patterns to those that an audience's streams, or the service, want; the result removes them again, once. */
  const want = (audience: EventAudience, by: "counts" | "followed", patterns: readonly string[]): (() => void) => {
    const change = (step: 1 | -1): void => {
      const entry = entryOf(audience);
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
    add(filter) {
      const wanted = audiencesOf(filter).map((audience) => {
        const counts = entriesByKey.get(keyOf(audience))?.counts ?? new Map<string, number>();
        return { audience, patterns: withinBudget(audience, counts, filter) };
      });
      const ends = wanted.map(({ audience, patterns }) => want(audience, "counts", patterns));
      return () => {
        for (const end of ends) end();
      };
    },

    follow: (audience, pattern) => want(audience, "followed", [pattern]),
  };
}

const keyOf = (audience: EventAudience): string => (audience.scope === "space" ? audience.spaceId : "");

function audiencesOf({ scopes, spaceIds }: EventFilter): EventAudience[] {
  const audiences: EventAudience[] = [...spaceIds].map((spaceId) => ({ scope: "space", spaceId }));
  if (scopes.has("account")) audiences.push({ scope: "account" });
  return audiences;
}

/** Returns the narrowest patterns for the filter that keep the audience within its budget; the account's audience has no budget. */
function withinBudget(audience: EventAudience, counts: PatternCounts, filter: EventFilter): string[] {
  for (const byTarget of [true, false]) {
    const patterns = patternsOf(filter, byTarget);
    const all = new Set([...counts.keys(), ...patterns]);
    if (coverOf(all).length <= LIMITS.patternsPerSpace) return patterns;
    if (!byTarget && audience.scope === "account") return patterns;
  }
  throw refusedAs(
    "events.too_many_patterns",
    { spaceId: audience.scope === "space" ? audience.spaceId : undefined, limit: LIMITS.patternsPerSpace },
    refusal("event.patterns"),
  );
}
