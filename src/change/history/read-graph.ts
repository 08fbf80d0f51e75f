import type { HistoryEntry, HistoryTable } from "../../store/tables/history-table.ts";
import type { HistoryGraph } from "./graph.ts";
import type { Slices } from "./slice.ts";

const ENTRIES_A_READ = 2_000;

/** Which entries of an object are read. */
interface Span {
  /** By the order of the fold; exclusive. */
  readonly from: { readonly lamport: number; readonly change: number };
  /** About how far in that order: whatever is on the page that passes it is read, too. */
  readonly toLamport: number;
  /** By the order of arrival; exclusive. */
  readonly after: number;
  /** Inclusive. */
  readonly upTo: number;
}

/** Adds entries of an object to a graph that has none of them, in slices. Errors: server.unavailable. */
export async function readGraph(
  graph: HistoryGraph,
  table: Pick<HistoryTable, "entries">,
  objectNo: number,
  span: Span,
  slices: Slices,
): Promise<void> {
  const pages: HistoryEntry[][] = [];
  for (let { from } = span; ; ) {
    const page = table.entries(objectNo, from, span.after, span.upTo, ENTRIES_A_READ);
    pages.push(page);
    const last = page.at(-1);
    if (page.length < ENTRIES_A_READ || !last || last.lamport > span.toLamport) break;
    from = last;
    if (slices.due()) await slices.pause();
  }
  // In the order of arrival parents come first, and the entries were read in nearly that order.
  const entries = pages.flat().sort((a, b) => a.change - b.change);
  for (let at = 0; at < entries.length; at += ENTRIES_A_READ) {
    graph.add(entries.slice(at, at + ENTRIES_A_READ));
    if (slices.due()) await slices.pause();
  }
}
