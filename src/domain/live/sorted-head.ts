import type { SortEntry } from "../../query/value/sort.ts";

/**
 * The first matches of a sorted collection, as far as they are held: at least `needed` of them, unless there are fewer, and
 * behind them a reserve of rows that replace rows that leave, without a read of the store.
 *
 * Invariant: it holds every match that sorts at or before its bound; `complete` means that it holds every match there is.
 */
export class SortedHead {
  readonly needed: number;
  readonly #compare: (a: SortEntry, b: SortEntry) => number;
  #capacity: number;
  #entries: SortEntry[] = [];
  readonly #entryById = new Map<string, SortEntry>();
  #bound: SortEntry | undefined;
  #complete = false;

  constructor(compare: (a: SortEntry, b: SortEntry) => number, needed: number, reserve: number) {
    this.#compare = compare;
    this.needed = needed;
    this.#capacity = needed + reserve;
  }

  /** How many entries it holds at most. */
  get capacity(): number {
    return this.#capacity;
  }

  get length(): number {
    return this.#entries.length;
  }

  /** Whether rows have left and only the store knows which ones follow. */
  get isShort(): boolean {
    return !this.#complete && this.#entries.length < this.needed;
  }

  /** Returns the id at a position below `length`. */
  idAt(position: number): string {
    return (this.#entries[position] as SortEntry).id;
  }

  has(id: string): boolean {
    return this.#entryById.has(id);
  }

  /** The position of a held id in the order, or -1. */
  positionOf(id: string): number {
    const entry = this.#entryById.get(id);
    return entry ? this.#search(entry) : -1;
  }

  remove(id: string): void {
    const entry = this.#entryById.get(id);
    if (!entry) return;
    this.#entries.splice(this.#search(entry), 1);
    this.#entryById.delete(id);
  }

  /** Adds a match that is not held, if its position is within what is held. */
  offer(entry: SortEntry): void {
    if (!this.#complete && (!this.#bound || this.#compare(entry, this.#bound) > 0)) return;
    this.#entries.splice(this.#search(entry), 0, entry);
    this.#entryById.set(entry.id, entry);
  }

  /** Drops what is beyond the capacity. */
  trim(): void {
    if (this.#entries.length <= this.#capacity) return;
    for (const { id } of this.#entries.splice(this.#capacity)) this.#entryById.delete(id);
    this.#complete = false;
    this.#bound = this.#entries[this.#capacity - 1];
  }

  /** Adds the matches that follow the held ones, in order. `complete`: no more follow. */
  append(entries: readonly SortEntry[], complete: boolean): void {
    for (const entry of entries) {
      this.#entries.push(entry);
      this.#entryById.set(entry.id, entry);
    }
    this.#complete = complete;
    this.#bound = this.#entries[this.#entries.length - 1];
  }

  /** Replaces what is held by every match up to `bound`, in order, except those that the caller offers next. */
  replace(entries: readonly SortEntry[], bound: SortEntry | undefined, complete: boolean): void {
    this.clear();
    this.append(entries, complete);
    this.#bound = bound;
  }

  /** Holds a larger reserve from the next `append` on, because reading the store proved expensive. */
  widen(reserve: number): void {
    this.#capacity = Math.max(this.#capacity, this.needed + reserve);
  }

  /** Removes everything, because there are no matches any more. */
  clear(): void {
    this.#entries = [];
    this.#entryById.clear();
    this.#complete = true;
    this.#bound = undefined;
  }

  /** Returns the first position whose entry does not sort before `entry`: its own, if it is held. */
  #search(entry: SortEntry): number {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#compare(this.#entries[middle] as SortEntry, entry) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
