import type { Database } from "bun:sqlite";
import { expect, setDefaultTimeout, test } from "bun:test";
import { parseFilter } from "../../src/query/filter/filter-parse.ts";
import { keyRangesOf } from "../../src/query/plan/key-ranges.ts";
import { indexesOf } from "../../src/query/plan/query-index.ts";
import { rowsOf, selectFrom } from "../../src/query/rows/row-source.ts";
import { filterToSql, type Sql, type SqlValue } from "../../src/query/rows/sql-superset.ts";
import { runQuery } from "../../src/query/run/run-query.ts";
import { parseSort } from "../../src/query/value/sort.ts";
import { referenceMatch, referenceSort } from "../support/oracle/reference-matcher.ts";
import { createRandom, FALSE_DATES, randomDocument, randomFilter, SCALARS } from "../support/random-json.ts";
import { freshSeed } from "../support/rng.ts";
import { COLLECTION_ID, createRowsTable, indexPaths } from "../support/rows-table.ts";

setDefaultTimeout(60_000);
const SEEDS = [3, 404, freshSeed("queries")];
const source = rowsOf(COLLECTION_ID);

function randomDocuments(seed: number, count: number) {
  const random = createRandom(seed);
  // The ids stand in no order, so that insertion order is not the order of ids.
  const docs = Array.from({ length: count }, (_, i) =>
    randomDocument(random, `r${(i * 7919) % count}${i % 3 ? "" : "😀"}`),
  );
  return { random, docs };
}

/** The ids a condition selects; over the keys of an index if its number is given. */
function idsWhere(db: Database, condition: Sql, index?: number): Set<string> {
  const select = selectFrom(source, { columns: "id", index, conditions: [condition] });
  return new Set(
    db
      .prepare<{ id: string }, SqlValue[]>(select.text)
      .all(...select.params)
      .map(({ id }) => id),
  );
}

/** Every operator with operands of every kind. */
const OPERANDS = [...SCALARS, [], {}, { x: 1 }, [1], Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
const comparisons = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"].flatMap((operator) =>
  OPERANDS.map((operand) => ({ [operator]: operand })),
);
const patterns = ["^a", "^ab", "^ab*", "^ab?", "^ab{0}", "^ab+", "^a|b", "^a.", "^-", "^a$", "^", "a"];
const CONDITIONS: object[] = [
  ...comparisons,
  // Neighbours are mostly of one type.
  ...OPERANDS.slice(1).map((operand, i) =>
    i % 2 ? { $gt: OPERANDS[i], $lte: operand } : { $gte: operand, $lt: OPERANDS[i] },
  ),
  ...OPERANDS.map((operand) => ({ $in: [operand, "zz", null] })),
  ...patterns.flatMap(($regex) => ["", "i", "m"].map(($options) => ({ $regex, $options }))),
  ...["null", "number", "int", "double", "string", "bool", "array", "object", "date"].map(($type) => ({ $type })),
  ...[{ $exists: true }, { $size: 1 }, { $mod: [2, 1] }, { $all: ["a"] }, { $elemMatch: { $gt: 1 } }],
];

test("[INDEX-1] SQL bounds enclose the exact matches for every operator and operand over every kind of value", () => {
  const values = [...SCALARS, ...FALSE_DATES, "\ud800", "ac", "abb", [], {}, { x: 1 }];
  const docs = [
    { id: "missing" },
    ...values.flatMap((value, i) => [
      { id: `v${i}`, a: value, b: { a: value } },
      { id: `l${i}`, a: [value], b: [{ a: value }] },
    ]),
  ];
  const db = createRowsTable(docs);
  const paths = ["a", "b.a", "b"];
  indexPaths(db, paths);
  const indexes = indexesOf(db, source);
  for (const path of paths)
    for (const condition of CONDITIONS.flatMap((c) => [c, { $not: c }])) {
      const raw = { [path]: condition };
      const filter = parseFilter(raw);
      const matches = new Set(docs.filter((doc) => referenceMatch(doc, raw)).map(({ id }) => id));
      const { may, sure } = filterToSql(filter);
      const [mayIds, sureIds] = [idsWhere(db, may), idsWhere(db, sure)];
      const missed = [...matches].filter((id) => !mayIds.has(id));
      const wrong = [...sureIds].filter((id) => !matches.has(id));
      expect({ raw: JSON.stringify(raw), missed, wrong }).toEqual({ raw: JSON.stringify(raw), missed: [], wrong: [] });
      for (const { ranges } of keyRangesOf(filter)) {
        const inRanges = ranges.flatMap((range) => [...idsWhere(db, range, indexes.get(path))]);
        const outside = [...matches].filter((id) => !inRanges.includes(id));
        expect({ raw: JSON.stringify(raw), outside }).toEqual({ raw: JSON.stringify(raw), outside: [] });
      }
    }
});

test("[INDEX-1] SQL bounds over kept keys enclose the exact matches where no row has an array; ranges are disjoint", () => {
  const values = [...SCALARS, ...FALSE_DATES, "\ud800", "ac", "abb", {}, { x: 1 }];
  const docs = [{ id: "missing" }, ...values.map((value, i) => ({ id: `v${i}`, a: value, b: { a: value } }))];
  const db = createRowsTable([...docs, { id: "above", ...{ b: [{ a: 1 }] } }]);
  indexPaths(db, ["a", "b.a"]);
  const indexes = indexesOf(db, source);
  for (const path of ["a", "b.a"])
    for (const condition of CONDITIONS.flatMap((c) => [c, { $not: c }])) {
      const raw = { [path]: condition };
      const filter = parseFilter(raw);
      const index = indexes.get(path);
      const matches = new Set(docs.filter((doc) => referenceMatch(doc, raw)).map(({ id }) => id));
      const { may, sure } = filterToSql(filter, path);
      const [mayIds, sureIds] = [idsWhere(db, may, index), idsWhere(db, sure, index)];
      const missed = [...matches].filter((id) => !mayIds.has(id));
      const wrong = [...sureIds].filter((id) => id !== "above" && !matches.has(id));
      const [range] = keyRangesOf(filter);
      const found = (range?.ranges ?? []).flatMap((each) => [...idsWhere(db, each, index)]);
      const context = { raw: JSON.stringify(raw) };
      expect({ ...context, missed, wrong, twice: found.length - new Set(found).size }).toEqual({
        ...context,
        missed: [],
        wrong: [],
        twice: 0,
      });
    }
});

/** Random documents and queries about them, with the ids that match by the reference, in their order. */
function makeQueries(seed: number) {
  const { random, docs } = randomDocuments(seed, 300);
  const queries = Array.from({ length: 180 }, () => {
    const raw = random.below(6) ? randomFilter(random, 1) : {};
    const paths = ["a", "a", "b", "a.b", "a.0", "id", "id"];
    const sort = Array.from({ length: random.below(3) }, () => (random.below(2) ? "-" : "") + random.pick(paths));
    const [limit, offset] = [random.below(3) ? random.below(20) : 0, random.below(2) ? random.below(12) : 0];
    const includeTotal = random.below(2) === 0;
    const matching = docs.filter((doc) => referenceMatch(doc, raw));
    const matches = referenceSort(matching, sort).map(({ id }) => id);
    return { raw, sort, limit, offset, includeTotal, matches };
  });
  return { docs, queries };
}

const queriesBySeed = new Map<number, ReturnType<typeof makeQueries>>();
/** The same for every set of indexes: the reference, which is slow, is asked once. */
function queriesOf(seed: number): ReturnType<typeof makeQueries> {
  const known = queriesBySeed.get(seed) ?? makeQueries(seed);
  queriesBySeed.set(seed, known);
  return known;
}

for (const seed of SEEDS) {
  test(`[INDEX-1] SQL bounds enclose the exact matches, seed ${seed}`, () => {
    const { random, docs } = randomDocuments(seed, 400);
    const db = createRowsTable(docs);
    let narrowed = 0;
    for (let round = 0; round < 350; round++) {
      const raw = randomFilter(random);
      const { may, sure, exact } = filterToSql(parseFilter(raw));
      const matches = new Set(docs.filter((doc) => referenceMatch(doc, raw)).map(({ id }) => id as string));
      const [mayIds, sureIds] = [idsWhere(db, may), idsWhere(db, sure)];
      const context = { seed, raw: JSON.stringify(raw) };
      expect({ ...context, missed: [...matches].filter((id) => !mayIds.has(id)) }).toEqual({ ...context, missed: [] });
      expect({ ...context, wrong: [...sureIds].filter((id) => !matches.has(id)) }).toEqual({ ...context, wrong: [] });
      if (exact) expect({ ...context, size: mayIds.size }).toEqual({ ...context, size: matches.size });
      if (mayIds.size < docs.length) narrowed++;
    }
    expect(narrowed).toBeGreaterThan(150);
  });

  for (const indexed of [[], ["a"], ["a", "b", "c", "a.b", "a.0"]])
    test(`[INDEX-1] [QUERY-4] runQuery is filter, sort and slice, indexes on [${indexed}], seed ${seed}`, () => {
      const { docs, queries } = queriesOf(seed + 1);
      const db = createRowsTable(docs);
      indexPaths(db, indexed);
      const used = new Set<string>();
      for (const { raw, sort, limit, offset, includeTotal, matches } of queries) {
        const result = runQuery(db, source, {
          filter: parseFilter(raw),
          sort: parseSort(sort),
          limit,
          offset,
          includeTotal,
        });
        if (result.stats.index) used.add(result.stats.index);
        const expected = matches.slice(offset, limit > 0 ? offset + limit : undefined);
        const context = { seed, raw: JSON.stringify(raw), sort, limit, offset };
        expect({ ...context, ids: result.records.map((text) => JSON.parse(text).id) }).toEqual({
          ...context,
          ids: expected,
        });
        expect({ ...context, total: result.total, hasNext: result.hasNext }).toEqual({
          ...context,
          total: includeTotal ? matches.length : undefined,
          hasNext: includeTotal ? offset + expected.length < matches.length : undefined,
        });
      }
      expect(used.size).toBe(indexed.length);
    });
}
