import { createWeightedCache, type WeightedCache } from "../../base/weighted-cache.ts";
import type { HistoryGraph } from "./graph.ts";

const GRAPH_BYTES = 64 << 20;
const STATE_BYTES = 32 << 20;

/** What the histories of all open spaces keep in memory together. Keys begin with a space's `owner`. */
export interface HistoryMemory {
  graphs: WeightedCache<HistoryGraph>;
  /** Texts of folded records. */
  states: WeightedCache<string>;
  nextOwner(): string;
}

export function createHistoryMemory(): HistoryMemory {
  let owners = 0;
  return {
    graphs: createWeightedCache(GRAPH_BYTES),
    states: createWeightedCache(STATE_BYTES),
    nextOwner: () => `${owners++}/`,
  };
}
