/** A bound of an interval; undefined means no bound. All bounds of one list have the same type. */
export type Bound = number | string | undefined;

interface Interval<W> {
  readonly owner: W;
  readonly low: Bound;
  readonly high: Bound;
}

/** Intervals of a block are skipped together when all of them end too early. */
const BLOCK = 64;

/** Closed intervals with their owners; finds those that meet a range without looking at most of the others. */
export class IntervalList<W> {
  readonly #intervalsByOwner = new Map<W, Interval<W>[]>();
  readonly #compare: (a: number | string, b: number | string) => number;
  /** By low bound; undefined if intervals were added or removed since it was made. */
  #sorted: Interval<W>[] | undefined;
  /** The highest high bound of each block of `#sorted`. */
  #blockHighs: Bound[] = [];

  constructor(compare: (a: number | string, b: number | string) => number) {
    this.#compare = compare;
  }

  /** How many owners it has. */
  get size(): number {
    return this.#intervalsByOwner.size;
  }

  add(owner: W, low: Bound, high: Bound): void {
    const intervals = this.#intervalsByOwner.get(owner);
    if (intervals) intervals.push({ owner, low, high });
    else this.#intervalsByOwner.set(owner, [{ owner, low, high }]);
    this.#sorted = undefined;
  }

  /** Removes all intervals of an owner. */
  remove(owner: W): void {
    if (this.#intervalsByOwner.delete(owner)) this.#sorted = undefined;
  }

  /** Yields the owners of the intervals that meet [low, high], once for each such interval. */
  *meeting(low: Bound, high: Bound): Generator<W> {
    const sorted = this.#sorted ?? this.#sort();
    for (let block = 0; block * BLOCK < sorted.length; block++) {
      const start = block * BLOCK;
      // Sorted by low bound: from here on, all intervals begin too late.
      if (this.#isAbove((sorted[start] as Interval<W>).low, high)) return;
      if (this.#isAbove(low, this.#blockHighs[block])) continue;
      for (const interval of sorted.slice(start, start + BLOCK))
        if (!this.#isAbove(interval.low, high) && !this.#isAbove(low, interval.high)) yield interval.owner;
    }
  }

  /** Whether a low bound is above a high one. */
  #isAbove(low: Bound, high: Bound): boolean {
    return low !== undefined && high !== undefined && this.#compare(low, high) > 0;
  }

  #sort(): Interval<W>[] {
    const compare = this.#compare;
    const sorted = [...this.#intervalsByOwner.values()].flat().sort(({ low: a }, { low: b }) => {
      if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined);
      return compare(a, b);
    });
    this.#blockHighs = [];
    for (let start = 0; start < sorted.length; start += BLOCK) {
      let highest: Bound = sorted[start]?.high;
      for (const { high } of sorted.slice(start, start + BLOCK)) {
        if (highest === undefined) break;
        if (high === undefined || compare(high, highest) > 0) highest = high;
      }
      this.#blockHighs.push(highest);
    }
    this.#sorted = sorted;
    return sorted;
  }
}
