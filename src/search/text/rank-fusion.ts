/** Joins the results of the search by words and the search by meaning. */
export interface Found {
  readonly id: number;
  /** Higher is better; comparable within one list. */
  readonly score: number;
}

export interface Fused extends Found {
  readonly foundBy: readonly ("fts" | "vector")[];
}

/** The smaller this is, the less the second place counts compared with the first. */
const SMOOTHING = 60;
/** Measured; see docs/search.md. */
const WEIGHTS = { fts: 2, vector: 1 };

/**
 * Reciprocal rank fusion: results rank high when they rank high in either list, and higher when they are in both. Scores are
 * between 0 and 1, where 1 means first in both.
 */
export function fuseRanks(fts: readonly Found[], vector: readonly Found[], weights = WEIGHTS): Fused[] {
  const fused = new Map<number, { score: number; foundBy: ("fts" | "vector")[] }>();
  const most = (weights.fts + weights.vector) / (SMOOTHING + 1);
  const take = (list: readonly Found[], name: "fts" | "vector"): void => {
    let rank = 0;
    let last = Number.NaN;
    list.forEach(({ id, score }, index) => {
      // Equal scores share a rank, because their order is accidental.
      if (score !== last) rank = index + 1;
      last = score;
      const one = fused.get(id) ?? { score: 0, foundBy: [] };
      one.score += weights[name] / (SMOOTHING + rank) / most;
      one.foundBy.push(name);
      fused.set(id, one);
    });
  };
  take(fts, "fts");
  take(vector, "vector");
  return [...fused].map(([id, each]) => ({ id, ...each })).sort((a, b) => b.score - a.score);
}
