import type { SpaceStore } from "../../store/space-store.ts";
import { parseVersion } from "../codec/version.ts";
import { namedChange } from "../graph/named-change.ts";
import type { ObjectEntry } from "../graph/object-cache.ts";
import { HistoryGraph } from "./graph.ts";
import { readGraph } from "./read-graph.ts";
import { createSlices } from "./slice.ts";

/**
 * Finds what the authors of some versions of an object knew when they wrote them, themselves included. The result answers for
 * versions that are not older than `since`: the graph is read from there on. Versions are texts that `_ver` holds.
 * Errors: server.unavailable when the space is closed meanwhile.
 */
export async function causalPast(
  { store, closing }: { readonly store: Pick<SpaceStore, "changes" | "history">; closing(): boolean },
  object: ObjectEntry,
  versions: readonly string[],
  since: string,
): Promise<(version: string) => boolean> {
  const lamportOf = (version: string): number => parseVersion(version)?.lamport ?? 0;
  const graph = new HistoryGraph();
  const span = {
    from: { lamport: lamportOf(since), change: 0 },
    toLamport: versions.reduce((top, version) => Math.max(top, lamportOf(version)), 0),
    after: 0,
    upTo: Number.MAX_SAFE_INTEGER,
  };
  await readGraph(graph, store.history, object.no, span, createSlices(closing));
  const indexOf = (version: string): number => {
    const change = namedChange(store.changes, object.no, version);
    return change === undefined ? -1 : graph.indexOf(change.no);
  };
  const { member } = graph.ancestors(versions.map(indexOf).filter((index) => index >= 0));
  return (version) => member[indexOf(version)] === 1;
}
