import type { HistoryTable } from "../store/history-table.ts";
import { HistoryGraph } from "./history-graph.ts";
import type { Slices } from "./history-slice.ts";
import type { ObjectCache } from "./object-cache.ts";

const DEFAULT_LIMIT_BYTES = 64 << 20;
const ENTRIES_A_READ = 2_000;

/** The graphs that are kept in memory, of all open spaces together: those used last, up to a number of bytes. */
export interface GraphMemory {
  get(key: string): HistoryGraph | undefined;
  /** Keeps a graph; it may have grown since. Older ones give way, itself never. */
  keep(key: string, graph: HistoryGraph): void;
  drop(keyPrefix: string): void;
  nextOwner(): string;
}

export function createGraphMemory(limitBytes = DEFAULT_LIMIT_BYTES): GraphMemory {
  const kept = new Map<string, { graph: HistoryGraph; bytes: number }>();
  let bytes = 0;
  let owners = 0;
  const forget = (key: string) => {
    bytes -= kept.get(key)?.bytes ?? 0;
    kept.delete(key);
  };
  return {
    get: (key) => kept.get(key)?.graph,
    keep(key, graph) {
      forget(key);
      kept.set(key, { graph, bytes: graph.bytes });
      bytes += graph.bytes;
      for (const oldest of kept.keys()) {
        if (bytes <= limitBytes || oldest === key) break;
        forget(oldest);
      }
    },
    drop(keyPrefix) {
      for (const key of [...kept.keys()]) if (key.startsWith(keyPrefix)) forget(key);
    },
    nextOwner: () => `${owners++}/`,
  };
}

/** The graphs of a space's objects, read when they are asked for and brought up to date when objects have moved on. */
export type Graphs = ReturnType<typeof createGraphs>;

export function createGraphs(table: HistoryTable, objects: Pick<ObjectCache, "byNo">, memory: GraphMemory) {
  const owner = memory.nextOwner();
  /** Up to which change each graph was read: roots have numbers too and are in none. */
  const readTo = new WeakMap<HistoryGraph, number>();
  const reading = new Map<number, Promise<unknown>>();

  /** The last change that came to an object is always one of its heads. */
  const newestOf = (obj: number): number => {
    let newest = 0;
    for (const head of objects.byNo(obj)?.heads ?? []) newest = Math.max(newest, head.no);
    return newest;
  };

  const isCurrent = (graph: HistoryGraph, obj: number) => (readTo.get(graph) ?? 0) >= newestOf(obj);

  const extend = async (graph: HistoryGraph, obj: number, slices: Slices): Promise<void> => {
    const upTo = newestOf(obj);
    const after = readTo.get(graph) ?? 0;
    const pages = [];
    let from = { lamport: -1, change: 0 };
    for (;;) {
      const page = table.entries(obj, from, after, upTo, ENTRIES_A_READ);
      pages.push(page);
      if (page.length < ENTRIES_A_READ) break;
      from = page[page.length - 1]!;
      if (slices.due()) await slices.pause();
    }
    graph.add(pages.flat());
    readTo.set(graph, upTo);
    memory.keep(`${owner}${obj}`, graph);
  };

  return {
    /** The object's graph with every change that is here when the promise settles. */
    async of(obj: number, slices: Slices): Promise<HistoryGraph> {
      for (;;) {
        const busy = reading.get(obj);
        if (busy) {
          await busy.catch(() => undefined); // told to whoever started it
          continue;
        }
        const graph = memory.get(`${owner}${obj}`) ?? new HistoryGraph();
        if (isCurrent(graph, obj)) return graph;
        const read = extend(graph, obj, slices);
        reading.set(obj, read);
        try {
          await read;
        } finally {
          reading.delete(obj);
        }
      }
    },

    close: () => memory.drop(owner),
  };
}
