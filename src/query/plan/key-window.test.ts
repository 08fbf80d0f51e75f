import { describe, expect, test } from "bun:test";
import { createRng, type Rng } from "../../../test/support/rng.ts";
import { COLLECTION_ID, createRowsTable, indexPaths } from "../../../test/support/rows-table.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { compileFilter } from "../filter/filter-match.ts";
import { parseFilter } from "../filter/filter-parse.ts";
import { rowsOf } from "../rows/row-source.ts";
import { planRequest, type QueryRequest, runQuery } from "../run/run-query.ts";
import { parseSort } from "../value/sort.ts";
import { planText } from "./plan-text.ts";

const source = rowsOf(COLLECTION_ID);
const requestOf = (filter: Json, sort: string[], rest: Partial<QueryRequest> = {}): QueryRequest => ({
  filter: parseFilter(filter),
  sort: parseSort(sort),
  ...rest,
});

type Doc = JsonObject & { id: string };

function randomValue(rng: Rng, plain: boolean): Json | undefined {
  const values: (Json | undefined)[] = [
    rng.int(0, 9),
    rng.int(0, 3) / 2,
    rng.pick(["a", "b", "B", ""]),
    rng.chance(0.5),
  ];
  values.push(null, undefined, { $date: `2026-01-0${rng.int(1, 4)}T00:00:00.000Z` });
  if (!plain) values.push([rng.int(0, 9), "a"], [], { x: 1 }, { $date: "2026-01-01T00:00:00Z" });
  return rng.pick(values);
}

function randomDocs(rng: Rng, plain: boolean): Doc[] {
  return Array.from({ length: rng.int(0, 60) }, (_, i) => {
    const doc: Record<string, Json> = { id: `r${(i * 37) % 61}` };
    for (const path of ["a", "b", "c"]) {
      const value = randomValue(rng, plain);
      if (value !== undefined) doc[path] = value;
    }
    return doc as Doc;
  });
}

function randomFilter(rng: Rng): JsonObject {
  const operand = () => randomValue(rng, true) ?? 5;
  const condition = (): Json =>
    rng.pick<Json>([
      operand(),
      { $in: [operand(), operand()] },
      { $gte: operand() },
      { $lt: operand() },
      { $gt: rng.int(0, 4), $lte: rng.int(3, 9) },
      { $type: rng.pick(["string", "number", "bool", "date"]) },
      { $ne: operand() },
      { $exists: true },
    ]);
  const paths = ["a", "b", "c"].filter(() => rng.chance(0.5));
  return Object.fromEntries(paths.map((path) => [path, condition()]));
}

describe("[INDEX-1] windows found in indexes are those the matcher finds", () => {
  test.each([1, 2, 3, 4])("seed %d", (seed) => {
    const rng = createRng(seed);
    let byKeys = 0;
    for (let world = 0; world < 25; world++) {
      const docs = randomDocs(rng, rng.chance(0.7));
      const [indexed, bare] = [createRowsTable(docs), createRowsTable(docs)];
      indexPaths(indexed, ["a", "b", "c"]);
      for (let i = 0; i < 40; i++) {
        const filter = randomFilter(rng);
        const sort = rng.pick<string[]>([[], ["id"], ["-id"], ["a"], ["-a"], ["b"], ["-c"], ["a", "-b"]]);
        const page = rng.chance(0.2) ? {} : { limit: rng.int(1, 12), offset: rng.chance(0.5) ? rng.int(0, 20) : 0 };
        const request = requestOf(filter, sort, { ...page, includeTotal: true, everyRow: rng.chance(0.5) });
        if (planRequest(indexed, source, request).access.kind === "byKeys") byKeys++;
        const { records, total, hasNext } = runQuery(indexed, source, request);
        const expected = runQuery(bare, source, request);
        const asked = JSON.stringify({ filter, sort, page });
        expect([asked, records, total, hasNext]).toEqual([asked, expected.records, expected.total, expected.hasNext]);
      }
      indexed.close();
      bare.close();
    }
    expect(byKeys).toBeGreaterThan(100);
  });
});

describe("a large collection", () => {
  const COUNT = 20_000;
  const docs = Array.from({ length: COUNT }, (_, i) => ({
    id: `r${String((i * 7919) % COUNT).padStart(5, "0")}`,
    n: i,
    team: i < 40 ? "early" : `team-${i % 50}`,
    done: i % 2 === 0,
  }));
  const db = createRowsTable(docs);
  indexPaths(db, ["n", "team"]);
  const ask = (filter: Json, sort: string[], rest: Partial<QueryRequest>) => {
    const request = requestOf(filter, sort, rest);
    const plan = planRequest(db, source, request);
    return { plan, text: planText(plan), ...runQuery(db, source, request, plan) };
  };

  test("[INDEX-6] a range of half of all without a sort is walked by id, and ends at the window", () => {
    const { plan, stats, text } = ask({ n: { $gte: COUNT / 2 } }, [], { limit: 50 });
    expect(plan.access.kind).toBe("byId");
    expect(stats.candidates).toBeLessThan(200);
    expect(text).toMatch(/^rows by id, until the window is full; estimated \d+ rows, /);
  });

  test("[INDEX-6] a walk by id whose matches all come late ends by the keys of the range", () => {
    const late = createRowsTable(docs.map((doc) => ({ ...doc, n: Number(doc.id.slice(1)) })));
    indexPaths(late, ["n"]);
    const request = requestOf({ n: { $gte: COUNT / 2 } }, [], { limit: 20, offset: 3 });
    expect(planRequest(late, source, request).access.kind).toBe("byId");
    const { records, stats } = runQuery(late, source, request);
    expect(records.map((record) => (JSON.parse(record) as { id: string }).id)).toEqual(
      Array.from({ length: 20 }, (_, i) => `r${COUNT / 2 + 3 + i}`),
    );
    expect(stats.candidates).toBeLessThan(3_000);
  });

  test("[INDEX-6] a small range without a sort is put into the order of ids by its keys", () => {
    const { plan, stats } = ask({ n: { $gte: COUNT - 500 } }, [], { limit: 20 });
    expect([plan.access.kind, stats.candidates]).toEqual(["byKeys", 20]);
  });

  test("[INDEX-6] a sort with an offset skips in the index", () => {
    for (const sort of ["n", "-n"]) {
      const { plan, stats, records } = ask({}, [sort], { limit: 10, offset: 9_000 });
      expect([sort, plan.access.kind, stats.candidates]).toEqual([sort, "byKeys", 10]);
      expect((JSON.parse(records[0] as string) as { n: number }).n).toBe(sort === "n" ? 9_000 : COUNT - 9_001);
    }
  });

  test("[INDEX-6] a sort within an equality asks both indexes", () => {
    const { plan, text, stats, records } = ask({ team: "team-3" }, ["-n"], { limit: 10, includeTotal: true });
    expect([plan.access.kind, stats.candidates, stats.matches]).toEqual(["byKeys", 10, 10]);
    expect(text).toContain("index on n in the order of the sort beside team, by its keys alone");
    const numbers = records.map((record) => (JSON.parse(record) as { n: number }).n);
    expect(numbers).toEqual(
      docs
        .filter(({ team }) => team === "team-3")
        .map(({ n }) => n)
        .reverse()
        .slice(0, 10),
    );
  });

  test("[INDEX-6] totals of what the indexes say are counted there", () => {
    for (const filter of [{ team: "team-3" }, { n: { $gte: 10_000 } }, { team: { $in: ["team-3", "early"] } }]) {
      const { total, stats } = ask(filter, ["n"], { limit: 5, includeTotal: true });
      expect(total).toBe(docs.filter(compileFilter(parseFilter(filter))).length);
      expect(stats.candidates).toBe(5);
    }
  });

  test("[INDEX-6] a walk whose matches lie elsewhere than estimated gives up and finds them all the same", () => {
    const { records, stats } = ask({ team: "early" }, ["-n"], { limit: 10 });
    expect(records.map((record) => (JSON.parse(record) as { n: number }).n)).toEqual([
      39, 38, 37, 36, 35, 34, 33, 32, 31, 30,
    ]);
    expect(stats.candidates).toBeLessThan(100);
  });

  test("[API-10] a walk over keys can be stopped", () => {
    const request = requestOf({ team: "team-49" }, ["n"], { limit: 10, shouldStop: () => true });
    expect(planRequest(db, source, request).access.kind).toBe("byKeys");
    expect(() => runQuery(db, source, request)).toThrow("cancelled");
  });
});
