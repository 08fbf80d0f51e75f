import { expect, test } from "bun:test";
import { compileFilter } from "../../src/query/filter/filter-match.ts";
import { parseFilter } from "../../src/query/filter/filter-parse.ts";
import { makeComparator, parseSort } from "../../src/query/value/sort.ts";
import { referenceMatch, referenceSort } from "../support/oracle/reference-matcher.ts";
import { createRandom, randomDocument, randomFilter } from "../support/random-json.ts";
import { freshSeed } from "../support/rng.ts";

const SEEDS = [1, 20260131, freshSeed("filters")];

for (const seed of SEEDS) {
  test(`[QUERY-2] random filters match as the reference does, seed ${seed}`, () => {
    const random = createRandom(seed);
    let accepted = 0;
    for (let round = 0; round < 4_000; round++) {
      const raw = randomFilter(random);
      const match = compileFilter(parseFilter(raw));
      for (let n = 0; n < 12; n++) {
        const doc = randomDocument(random, `r${n}`);
        const expected = referenceMatch(doc, raw);
        if (match(doc) !== expected)
          throw new Error(`seed ${seed}: ${JSON.stringify(raw)} on ${JSON.stringify(doc)} should be ${expected}`);
        if (expected) accepted++;
      }
    }
    // Both answers must be common, or the comparison shows little.
    expect(accepted).toBeGreaterThan(3_000);
    expect(accepted).toBeLessThan(40_000);
  });

  test(`[QUERY-3] random sorts order as the reference does, seed ${seed}`, () => {
    const random = createRandom(seed + 1);
    for (let round = 0; round < 60; round++) {
      const docs = Array.from({ length: 60 }, (_, i) => randomDocument(random, `r${(i * 37) % 60}`));
      const paths = ["a", "b", "a.b", "a.0", "c.b.a", "id"];
      const sort = Array.from({ length: 1 + random.below(3) }, () => (random.below(2) ? "-" : "") + random.pick(paths));
      const sorted = [...docs].sort(makeComparator(parseSort(sort)));
      expect({ seed, sort, ids: sorted.map((d) => d.id) }).toEqual({
        seed,
        sort,
        ids: referenceSort(docs, sort).map((d) => d.id),
      });
    }
  });
}
