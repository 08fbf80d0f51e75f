import type { WeightedCache } from "../../base/weighted-cache.ts";
import type { HistoryTable } from "../../store/tables/history-table.ts";
import type { ObjectCache } from "../graph/object-cache.ts";
import { HistoryGraph } from "./graph.ts";
import { readGraph } from "./read-graph.ts";
import type { Slices } from "./slice.ts";

/** The graphs of a space's objects; they are read when they are asked for, and updated when objects got new changes. */
export type Graphs = ReturnType<typeof createGraphs>;

export function createGraphs(
  table: HistoryTable,
  objects: Pick<ObjectCache, "byNo">,
  memory: WeightedCache<HistoryGraph>,
  owner: string,
) {
  /** Up to which change each graph was read (roots have numbers too, but are in no graph), and at which revision. */
  const readTo = new WeakMap<HistoryGraph, number>();
  const revisionOf = new WeakMap<HistoryGraph, number>();
  const reading = new Map<number, Promise<unknown>>();

  /** The last change that came to an object is always one of its heads. */
  const newestOf = (objectNo: number): number => {
    let newest = 0;
    for (const head of objects.byNo(objectNo)?.heads ?? []) newest = Math.max(newest, head.no);
    return newest;
  };

  const isCurrent = (graph: HistoryGraph, objectNo: number) => (readTo.get(graph) ?? 0) >= newestOf(objectNo);

  const extend = async (graph: HistoryGraph, objectNo: number, slices: Slices): Promise<void> => {
    const upTo = newestOf(objectNo);
    const from = { lamport: -1, change: 0 };
    const span = { from, toLamport: Number.POSITIVE_INFINITY, after: readTo.get(graph) ?? 0, upTo };
    await readGraph(graph, table, objectNo, span, slices);
    readTo.set(graph, upTo);
    memory.keep(`${owner}${objectNo}`, graph, graph.bytes);
  };

  return {
    /** Returns the object's graph with every change that is stored when the promise settles. */
    async of(objectNo: number, slices: Slices): Promise<HistoryGraph> {
      for (;;) {
        const busy = reading.get(objectNo);
        if (busy) {
          await busy.catch(() => undefined); // the error reaches the caller that started the read
          continue;
        }
        const known = memory.get(`${owner}${objectNo}`);
        const revision = table.revisionOf(objectNo);
        const graph = known && revisionOf.get(known) === revision ? known : new HistoryGraph();
        revisionOf.set(graph, revision);
        if (isCurrent(graph, objectNo)) return graph;
        const read = extend(graph, objectNo, slices);
        reading.set(objectNo, read);
        try {
          await read;
        } finally {
          reading.delete(objectNo);
        }
      }
    },
  };
}
