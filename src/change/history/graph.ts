import type { HistoryEntry } from "../../store/tables/history-table.ts";

const FIRST_CAPACITY = 256;
const HIDDEN = 1;

/** The ancestors of a change, itself included, among the graph entries that existed when they were computed. */
export interface Ancestors {
  /** By index in the graph; entries beyond its end came later and are no ancestors. */
  readonly member: Uint8Array;
  /** The lowest lamport of an entry that is no ancestor; Infinity when there is none. */
  lowestOutside: number;
}

/**
 * Holds the graph of one object's changes in a few flat arrays, about 40 bytes per change. Entries are in the order in which they
 * arrived here, parents first; new entries are only added at the end, so an index stays valid.
 */
export class HistoryGraph {
  size = 0;
  /** The number of the newest change in it. */
  lastChange = 0;
  #change = new Float64Array(FIRST_CAPACITY);
  #lamport = new Float64Array(FIRST_CAPACITY);
  #timeMs = new Float64Array(FIRST_CAPACITY);
  #writer = new Uint32Array(FIRST_CAPACITY);
  #datasetNo = new Uint32Array(FIRST_CAPACITY);
  #flags = new Uint8Array(FIRST_CAPACITY);
  /** How many children an entry has; every number above one is stored as two. */
  #children = new Uint8Array(FIRST_CAPACITY);
  /** Parents of entry i: `#parents` from `#parentsEnd[i - 1]` to `#parentsEnd[i]`. */
  #parentsEnd = new Uint32Array(FIRST_CAPACITY);
  #parents = new Uint32Array(FIRST_CAPACITY);
  #edges = 0;

  /** Adds entries that came after all it holds, in the order of their numbers. */
  add(entries: readonly HistoryEntry[]): void {
    for (const entry of entries) this.#push(entry);
  }

  #push(entry: HistoryEntry): void {
    const at = this.size++;
    if (at >= this.#change.length) this.#grow();
    this.#change[at] = entry.change;
    this.#lamport[at] = entry.lamport;
    this.#timeMs[at] = entry.timeMs;
    this.#writer[at] = entry.writer;
    this.#datasetNo[at] = entry.datasetNo;
    this.#flags[at] = entry.hidden ? HIDDEN : 0;
    for (const change of entry.parents) {
      const parent = this.indexOf(change, at);
      if (parent < 0) continue; // the root
      if (this.#edges >= this.#parents.length) this.#parents = grown(this.#parents, Uint32Array);
      this.#parents[this.#edges++] = parent;
      if (this.#children[parent]! < 2) this.#children[parent]!++;
    }
    this.#parentsEnd[at] = this.#edges;
    this.lastChange = entry.change;
  }

  #grow(): void {
    this.#change = grown(this.#change, Float64Array);
    this.#lamport = grown(this.#lamport, Float64Array);
    this.#timeMs = grown(this.#timeMs, Float64Array);
    this.#writer = grown(this.#writer, Uint32Array);
    this.#datasetNo = grown(this.#datasetNo, Uint32Array);
    this.#flags = grown(this.#flags, Uint8Array);
    this.#children = grown(this.#children, Uint8Array);
    this.#parentsEnd = grown(this.#parentsEnd, Uint32Array);
  }

  /** Bytes of memory it holds. */
  get bytes(): number {
    return this.#change.length * 38 + this.#parents.length * 4;
  }

  /** Returns the index of a change, given its number; -1 when it is not in the graph. */
  indexOf(change: number, below = this.size): number {
    let low = 0;
    let high = below - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const found = this.#change[middle]!;
      if (found === change) return middle;
      if (found < change) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  changeAt = (index: number): number => this.#change[index]!;
  lamportAt = (index: number): number => this.#lamport[index]!;
  timeMsAt = (index: number): number => this.#timeMs[index]!;
  writerAt = (index: number): number => this.#writer[index]!;
  datasetNoAt = (index: number): number => this.#datasetNo[index]!;
  isHidden = (index: number): boolean => (this.#flags[index]! & HIDDEN) !== 0;

  /** Returns the parent of an entry that has only this parent, where the parent has only this child; else -1. */
  lineBelow(index: number): number {
    const start = index === 0 ? 0 : this.#parentsEnd[index - 1]!;
    if (this.#parentsEnd[index]! - start !== 1) return -1;
    const parent = this.#parents[start]!;
    return this.#children[parent] === 1 ? parent : -1;
  }

  /**
   * Returns the causal past of some entries, including them unless `strictly`. It takes one pass over the entries before them.
   */
  ancestors(of: readonly number[], strictly = false): Ancestors {
    const member = new Uint8Array(this.size);
    let newest = -1;
    for (const index of of) {
      member[index] = 1;
      newest = Math.max(newest, index);
    }
    for (let index = newest; index >= 0; index--) {
      if (member[index] === 0) continue;
      const end = this.#parentsEnd[index]!;
      for (let edge = index === 0 ? 0 : this.#parentsEnd[index - 1]!; edge < end; edge++)
        member[this.#parents[edge]!] = 1;
    }
    if (strictly) for (const index of of) member[index] = 0;
    return { member, lowestOutside: this.#lowestOutside(member, 0, Number.POSITIVE_INFINITY) };
  }

  /** Takes account of entries that were added since the ancestors were computed: none of them is one. */
  refresh(ancestors: Ancestors, from: number): void {
    ancestors.lowestOutside = this.#lowestOutside(ancestors.member, from, ancestors.lowestOutside);
  }

  #lowestOutside(member: Uint8Array, from: number, known: number): number {
    let lowest = known;
    for (let index = from; index < this.size; index++) {
      if (member[index] !== 1 && this.#lamport[index]! < lowest) lowest = this.#lamport[index]!;
    }
    return lowest;
  }
}

function grown<T extends Float64Array | Uint32Array | Uint8Array>(array: T, make: new (length: number) => T): T {
  const larger = new make(array.length * 2);
  larger.set(array);
  return larger;
}
