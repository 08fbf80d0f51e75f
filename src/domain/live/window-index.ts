import type { Json, JsonObject } from "../../protocol/json.ts";
import type { Filter } from "../../query/filter/filter-types.ts";
import { foldText } from "../../query/filter/regex-literal.ts";
import { compilePathTest, type FieldPath } from "../../query/value/field-path.ts";
import { compareStrings } from "../../query/value/value-order.ts";
import {
  GRAM_CHARS,
  type Guard,
  type GuardKey,
  guardKeyOf,
  guardOptions,
  type RangeType,
  rangeValueOf,
} from "./filter-guard.ts";
import { IntervalList } from "./interval-list.ts";
import { PatternShelf } from "./pattern-shelf.ts";

/** The windows that guard one path. */
interface PathShelf<W> {
  readonly windowsByKey: Map<GuardKey, Set<W>>;
  readonly windowsByRange: Readonly<Record<RangeType, IntervalList<W>>>;
  /** Windows by one run of characters of the text that they ask for. */
  readonly windowsByGram: Map<string, Set<W>>;
  readonly patterns: PatternShelf<W>;
  /** Passes every value that the matcher would look at to `#seen`. */
  readonly collect: (doc: Json) => void;
}

/** A record before and after a write; either may be missing. */
export interface RecordStates {
  readonly parsedBefore: JsonObject | undefined;
  readonly parsed: JsonObject | undefined;
}

const compareNumbers = (a: number | string, b: number | string) => Number(a) - Number(b);
const compareTexts = (a: number | string, b: number | string) => compareStrings(String(a), String(b));
const RANGE_TYPES: readonly RangeType[] = ["number", "string", "date"];

/**
 * Finds the windows that a record can concern without trying all of them. Windows whose filter demands a value, a range, a text
 * or a pattern at a path are filed there; the others are always candidates.
 */
export class WindowIndex<W> {
  readonly #shelves = new Map<string, PathShelf<W>>();
  readonly #guardsByWindow = new Map<W, readonly Guard[]>();
  readonly #unguarded = new Set<W>();
  #seen: (Json | undefined)[] = [];

  add(window: W, filter: Filter): void {
    const guards = this.#leastCrowded(guardOptions(filter));
    if (!guards) {
      this.#unguarded.add(window);
      return;
    }
    this.#guardsByWindow.set(window, guards);
    for (const guard of guards) {
      const shelf = this.#shelves.get(guard.path.text) ?? this.#newShelf(guard.path);
      if ("keys" in guard) for (const key of guard.keys) addTo(shelf.windowsByKey, key, window);
      else if ("contains" in guard) addTo(shelf.windowsByGram, leastCrowdedGram(shelf, guard.contains), window);
      else if ("pattern" in guard) shelf.patterns.add(guard.pattern, window);
      else shelf.windowsByRange[guard.type].add(window, guard.low, guard.high);
    }
  }

  remove(window: W): void {
    this.#unguarded.delete(window);
    for (const guard of this.#guardsByWindow.get(window) ?? []) {
      const shelf = this.#shelves.get(guard.path.text);
      if (!shelf) continue;
      if ("keys" in guard) for (const key of guard.keys) removeFrom(shelf.windowsByKey, key, window);
      else if ("contains" in guard)
        for (const gram of gramsOf(guard.contains)) removeFrom(shelf.windowsByGram, gram, window);
      else if ("pattern" in guard) shelf.patterns.remove(guard.pattern, window);
      else shelf.windowsByRange[guard.type].remove(window);
      if (isEmpty(shelf)) this.#shelves.delete(guard.path.text);
    }
    this.#guardsByWindow.delete(window);
  }

  /** Visits every window that could match one of the two states of a record, and few others. */
  visitCandidates(states: RecordStates, visit: (window: W) => void): void {
    for (const window of this.#unguarded) visit(window);
    if (this.#shelves.size === 0) return;
    const found = new Set<W>();
    for (const shelf of this.#shelves.values()) {
      if (states.parsedBefore) this.#find(shelf, states.parsedBefore, found);
      if (states.parsed) this.#find(shelf, states.parsed, found);
    }
    for (const window of found) visit(window);
  }

  #find(shelf: PathShelf<W>, doc: JsonObject, found: Set<W>): void {
    const { windowsByKey, windowsByRange, windowsByGram, patterns, collect } = shelf;
    this.#seen = [];
    collect(doc);
    for (const value of this.#seen) {
      const key = guardKeyOf(value);
      if (key !== undefined) for (const window of windowsByKey.get(key) ?? []) found.add(window);
    }
    if (windowsByGram.size > 0)
      for (const value of this.#seen) if (typeof value === "string") findByGram(windowsByGram, value, found);
    if (patterns.size > 0) for (const value of this.#seen) if (typeof value === "string") patterns.find(value, found);
    for (const type of RANGE_TYPES) {
      const ranges = windowsByRange[type];
      if (ranges.size === 0) continue;
      const points = this.#seen.map(rangeValueOf).filter((point) => point?.type === type);
      const values = points.map((point) => point?.value ?? 0).sort(comparatorOf(type));
      if (values.length > 0) for (const window of ranges.meeting(values[0], values.at(-1))) found.add(window);
    }
  }

  /** Returns the option that the fewest windows share already, so that records find few windows that they do not match. */
  #leastCrowded(options: readonly (readonly Guard[])[]): readonly Guard[] | undefined {
    let best: { guards: readonly Guard[]; crowd: number } | undefined;
    for (const guards of options) {
      const crowd = guards.reduce((sum, guard) => sum + this.#crowdOf(guard), 0);
      if (!best || crowd < best.crowd) best = { guards, crowd };
    }
    return best?.guards;
  }

  #crowdOf(guard: Guard): number {
    const shelf = this.#shelves.get(guard.path.text);
    if (!shelf) return 0;
    if ("contains" in guard) return shelf.windowsByGram.get(leastCrowdedGram(shelf, guard.contains))?.size ?? 0;
    if ("pattern" in guard) return shelf.patterns.size;
    if (!("keys" in guard)) return shelf.windowsByRange[guard.type].size;
    return guard.keys.reduce<number>((sum, key) => sum + (shelf.windowsByKey.get(key)?.size ?? 0), 0);
  }

  #newShelf(path: FieldPath): PathShelf<W> {
    const note = (value: Json | undefined): boolean => {
      this.#seen.push(value);
      return false;
    };
    const shelf: PathShelf<W> = {
      windowsByKey: new Map(),
      windowsByRange: {
        number: new IntervalList(compareNumbers),
        string: new IntervalList(compareTexts),
        date: new IntervalList(compareNumbers),
      },
      windowsByGram: new Map(),
      patterns: new PatternShelf(),
      collect: compilePathTest(path, note, true),
    };
    this.#shelves.set(path.text, shelf);
    return shelf;
  }
}

function comparatorOf(type: RangeType): (a: number | string, b: number | string) => number {
  return type === "string" ? compareTexts : compareNumbers;
}

function addTo<K, W>(windowsByKey: Map<K, Set<W>>, key: K, window: W): void {
  const windows = windowsByKey.get(key);
  if (windows) windows.add(window);
  else windowsByKey.set(key, new Set([window]));
}

function removeFrom<K, W>(windowsByKey: Map<K, Set<W>>, key: K, window: W): void {
  const windows = windowsByKey.get(key);
  windows?.delete(window);
  if (windows?.size === 0) windowsByKey.delete(key);
}

/** The runs of characters of a text, each once. */
function gramsOf(text: string): string[] {
  const grams = new Set<string>();
  for (let at = 0; at + GRAM_CHARS <= text.length; at++) grams.add(text.slice(at, at + GRAM_CHARS));
  return [...grams];
}

/** Returns the run of a text under which the fewest windows are filed. */
function leastCrowdedGram<W>({ windowsByGram }: PathShelf<W>, text: string): string {
  let best = "";
  let least = Number.POSITIVE_INFINITY;
  for (const gram of gramsOf(text)) {
    const crowd = windowsByGram.get(gram)?.size ?? 0;
    if (crowd < least) [best, least] = [gram, crowd];
  }
  return best;
}

function findByGram<W>(windowsByGram: ReadonlyMap<string, Set<W>>, value: string, found: Set<W>): void {
  const text = foldText(value);
  for (let at = 0; at + GRAM_CHARS <= text.length; at++)
    for (const window of windowsByGram.get(text.slice(at, at + GRAM_CHARS)) ?? []) found.add(window);
}

function isEmpty<W>({ windowsByKey, windowsByRange, windowsByGram, patterns }: PathShelf<W>): boolean {
  return (
    windowsByKey.size === 0 &&
    windowsByGram.size === 0 &&
    patterns.size === 0 &&
    RANGE_TYPES.every((type) => windowsByRange[type].size === 0)
  );
}
