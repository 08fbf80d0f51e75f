/** What the ways to the rows of a query cost, in microseconds of a processor: measured once, good for comparing. */

/** Stepping over an entry of an index. */
const ENTRY = 0.15;
/** Putting an entry into an order that is not the index's. */
const SORTED_ENTRY = 0.4;
/** Looking for a record among the entries of another index. */
const PROBE = 1;
/** Reading a row by its number. */
const ROW = 4;
/** Reading a row and asking the matcher about it. */
const MATCHED_ROW = 9;
/** The same in the order of ids, where rows that follow each other are often on one page. */
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

/** Rows by id, until the window is full: of each `live / matches` of them one matches. */
export function idWalk(window: number, matches: number, live: number): Estimate {
  const rows = walked(window, matches, live);
  return estimate(rows, 0, rows * NEXT_ROW);
}

/** Rows in the order of an index, each matched, until the window is full. */
export function sortWalk(window: number, matches: number, live: number): Estimate {
  const rows = walked(window, matches, live);
  return estimate(rows, rows, rows * (ENTRY + MATCHED_ROW));
}

/** All candidates of an index, each matched. */
export function candidateHeap(candidates: number): Estimate {
  return estimate(candidates, candidates, candidates * (ENTRY + MATCHED_ROW));
}

/** Every row, each matched. */
export function wholeScan(live: number): Estimate {
  return estimate(live, 0, live * NEXT_ROW);
}

interface Walk {
  /** Entries that are stepped over, each looked for in so many other indexes. */
  readonly entries: number;
  readonly probes: number;
  readonly isSorted: boolean;
  /** Rows that are read in the end. */
  readonly rows: number;
}

/** Entries of an index, the rows of the window alone. */
export function keyWalk({ entries, probes, isSorted, rows }: Walk): Estimate {
  return estimate(rows, entries, entries * (ENTRY + PROBE * probes + (isSorted ? SORTED_ENTRY : 0)) + rows * ROW);
}

/** How many of `live` are passed until `window` of `matches` are found, were they spread evenly. */
export function walked(window: number, matches: number, live: number): number {
  return Math.min(live, (window * live) / Math.max(1, matches));
}

/**
 * Up to how many candidates counting is worth it: with more of them a walk in order until the window is full is cheaper
 * than reading all their entries.
 */
export function worthCounting(window: number, live: number): number {
  return Math.ceil(Math.sqrt((Math.min(window, live) * live * NEXT_ROW) / (ENTRY + SORTED_ENTRY)));
}
