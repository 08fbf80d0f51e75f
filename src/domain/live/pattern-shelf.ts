import type { RE2JS } from "re2js";
import { createWeightedCache } from "../../base/weighted-cache.ts";
import { regexSteps } from "../../query/filter/regex-steps.ts";

/** The windows that ask for one pattern. */
interface Slot<W> {
  readonly pattern: RE2JS;
  readonly windows: Set<W>;
}

/** What is known of a value: which of the first slots it matches, up to a number. */
interface Verdict<W> {
  tried: number;
  readonly matching: Slot<W>[];
}

/** A window is found untried where trying it may take more steps of the matcher: it decides itself what it does with the value. */
export const MOST_STEPS = 1 << 24;
/** About how many characters of values are remembered, a value's own cost included. */
const REMEMBERED_CHARS = 1 << 21;
const VALUE_COST = 64;
const MATCH_COST = 8;

const mayMatch = (pattern: RE2JS, value: string): boolean =>
  regexSteps(pattern, value.length) > MOST_STEPS || pattern.test(value);

const keyOf = (pattern: RE2JS): string => `${pattern.flags()} ${pattern.pattern()}`;

/**
 * Files windows by patterns that only trying them can judge. Each pattern tries a value once and the verdict is remembered,
 * because most writes leave the value at a given path as it was, or give it one that others have.
 */
export class PatternShelf<W> {
  /** In the order of arrival. A slot without windows is dead; it stays until many are. */
  #slots: Slot<W>[] = [];
  readonly #slotByPattern = new Map<string, Slot<W>>();
  #verdicts = createWeightedCache<Verdict<W>>(REMEMBERED_CHARS);

  /** How many patterns there are. */
  get size(): number {
    return this.#slotByPattern.size;
  }

  add(pattern: RE2JS, window: W): void {
    const key = keyOf(pattern);
    let slot = this.#slotByPattern.get(key);
    if (!slot) {
      slot = { pattern, windows: new Set() };
      this.#slotByPattern.set(key, slot);
      this.#slots.push(slot);
    }
    slot.windows.add(window);
  }

  remove(pattern: RE2JS, window: W): void {
    const key = keyOf(pattern);
    const slot = this.#slotByPattern.get(key);
    slot?.windows.delete(window);
    if (slot?.windows.size === 0) this.#slotByPattern.delete(key);
    if (this.#slots.length <= 2 * this.#slotByPattern.size) return;
    this.#slots = [...this.#slotByPattern.values()];
    this.#verdicts = createWeightedCache(REMEMBERED_CHARS);
  }

  /** Adds the windows whose pattern matches a value. */
  find(value: string, found: Set<W>): void {
    const verdict = this.#verdicts.get(value) ?? { tried: 0, matching: [] };
    if (verdict.tried < this.#slots.length) {
      for (const slot of this.#slots.slice(verdict.tried))
        if (slot.windows.size > 0 && mayMatch(slot.pattern, value)) verdict.matching.push(slot);
      verdict.tried = this.#slots.length;
      this.#verdicts.keep(value, verdict, VALUE_COST + value.length + MATCH_COST * verdict.matching.length);
    }
    for (const { windows } of verdict.matching) for (const window of windows) found.add(window);
  }
}
