/**
 * What the ways to the rows of a query cost, in microseconds of processor time. The figures were measured once and serve for
 * comparison.
 */

/** Stepping over an entry of an index. */
const ENTRY = 0.15;
/** Sorting an entry into an order that the index does not give. */
const SORTED_ENTRY = 0.4;
/** Looking for a record among the entries of another index. */
const PROBE = 1;
/** Reading a row by its number. */
const ROW = 4;
/** Reading a row and asking the matcher about it. */
const MATCHED_ROW = 9;
/** The same in the order of ids, where consecutive rows are often on one page. */
const NEXT_ROW = 6;

/** What a plan is expected to read. */
export interface Estimate {
  /** Rows. */
  readonly rows: number;
  /** Entries of indexes. */
  readonly entries: number;
  readonly costMs: number;
}

const estimate = (rows: number, entries: number, costUs: number): Estimate => ({
  rows: Math.ceil(rows),
  entries: Math.ceil(entries),
  costMs: costUs / 1_000,
});

/** Reads rows by id until the window is full: one of every `live / matches` rows matches. */
export function idWalk(window: number, matches: number, live: number): Estimate {
  const rows = walked(window, matches, live);
  return estimate(rows, 0, rows * NEXT_ROW);
}

/** Reads rows in the order of an index and matches each, until the window is full. */
export function sortWalk(window: number, matches: number, live: number): Estimate {
  const rows = walked(window, matches, live);
  return estimate(rows, rows, rows * (ENTRY + MATCHED_ROW));
}

/** Reads all candidates of an index and matches each. */
export function candidateHeap(candidates: number): Estimate {
  return estimate(candidates, candidates, candidates * (ENTRY + MATCHED_ROW));
}

/** Reads and matches every row. */
export function wholeScan(live: number): Estimate {
  return estimate(live, 0, live * NEXT_ROW);
}

interface Walk {
  /** Entries that are stepped over; each one is looked up in `probes` other indexes. */
  readonly entries: number;
  readonly probes: number;
  readonly isSorted: boolean;
  /** Rows that are read at the end. */
  readonly rows: number;
}

/** Steps over entries of an index and reads only the rows of the window. */
export function keyWalk({ entries, probes, isSorted, rows }: Walk): Estimate {
  return estimate(rows, entries, entries * (ENTRY + PROBE * probes + (isSorted ? SORTED_ENTRY : 0)) + rows * ROW);
}

/** How many of `live` rows are passed until `window` of `matches` are found, if the matches are spread evenly. */
export function walked(window: number, matches: number, live: number): number {
  return Math.min(live, (window * live) / Math.max(1, matches));
}

/**
 * Returns how many candidates are worth counting: with more of them, a walk in order until the window is full is cheaper than
 * reading all their entries.
 */
export function worthCounting(window: number, live: number): number {
  return Math.ceil(Math.sqrt((Math.min(window, live) * live * NEXT_ROW) / (ENTRY + SORTED_ENTRY)));
}
