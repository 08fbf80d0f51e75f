import { equalBytes } from "../../base/bytes.ts";
import type { HistoryEntry } from "../../store/history-table.ts";
import { parseVersion } from "../codec/version.ts";
import type { ObjectEntry } from "../graph/object-cache.ts";
import type { ChangeEngine } from "../space-engine.ts";
import { HistoryGraph } from "./graph.ts";
import { createSlices } from "./slice.ts";

const ENTRIES_A_READ = 2_000;

/**
 * Finds what the authors of some versions of an object knew when they wrote them, themselves included. The result answers for
 * versions that are not older than `since`: the graph is read from there on. Versions are texts that `_ver` holds.
 * Errors: server.unavailable when the space is closed meanwhile.
 */
export async function causalPast(
  { store, closing }: Pick<ChangeEngine, "store" | "closing">,
  object: ObjectEntry,
  versions: readonly string[],
  since: string,
): Promise<(version: string) => boolean> {
  const slices = createSlices(closing);
  const changeOf = (version: string): number | undefined => {
    const place = parseVersion(version);
    const isIt = (id: Uint8Array) => equalBytes(id.subarray(0, place!.idPrefix.length), place!.idPrefix);
    return place && store.changes.atLamport(object.no, place.lamport).find(({ id }) => isIt(id))?.no;
  };
  const lamportOf = (version: string): number => parseVersion(version)?.lamport ?? 0;
  const highest = versions.reduce((top, version) => Math.max(top, lamportOf(version)), 0);

  const entries: HistoryEntry[] = [];
  let from = { lamport: lamportOf(since), change: 0 };
  for (;;) {
    const page = store.history.entries(object.no, from, 0, Number.MAX_SAFE_INTEGER, ENTRIES_A_READ);
    entries.push(...page);
    const last = page.at(-1);
    if (page.length < ENTRIES_A_READ || !last || last.lamport > highest) break;
    from = last;
    if (slices.due()) await slices.pause();
  }
  // Parents come first in the order of arrival.
  entries.sort((a, b) => a.change - b.change);
  const graph = new HistoryGraph();
  for (let at = 0; at < entries.length; at += ENTRIES_A_READ) {
    graph.add(entries.slice(at, at + ENTRIES_A_READ));
    if (slices.due()) await slices.pause();
  }
  const indexOf = (version: string): number => {
    const change = changeOf(version);
    return change === undefined ? -1 : graph.indexOf(change);
  };
  const { member } = graph.ancestors(versions.map(indexOf).filter((index) => index >= 0));
  return (version) => member[indexOf(version)] === 1;
}
