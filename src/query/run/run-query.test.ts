import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { referenceSort } from "../../../test/support/oracle/reference-matcher.ts";
import { COLLECTION_ID, createRowsTable, indexPaths } from "../../../test/support/rows-table.ts";
import { checksumOf } from "../../base/checksum.ts";
import type { Json } from "../../protocol/json.ts";
import { parseFilter } from "../filter/filter-parse.ts";
import { rowsOf } from "../rows/row-source.ts";
import { parseSort } from "../value/sort.ts";
import { type QueryRequest, runQuery } from "./run-query.ts";

const COUNT = 9_000;
const pad = (n: number) => `r${String(n).padStart(5, "0")}`;
const docs = Array.from({ length: COUNT }, (_, i) => ({
  id: pad(i),
  status: ["todo", "doing", "done"][i % 3],
  n: (i * 7919) % COUNT,
  at: { $date: new Date(1.7e12 + i * 1000).toISOString() },
  ...(i % 1000 === 0 ? { tags: ["x", i] } : { tags: "x" }),
}));
const db = createRowsTable(docs);
indexPaths(db, ["status", "n", "at", "tags"]);
const source = rowsOf(COLLECTION_ID);

function query(filter: Json, sort: string[] = [], rest: Partial<QueryRequest> = {}) {
  const result = runQuery(db, source, { filter: parseFilter(filter), sort: parseSort(sort), ...rest });
  return { ...result, ids: result.records.map((text) => JSON.parse(text).id as string) };
}

test("[QUERY-5] records are the stored texts, untouched", () => {
  const text = '{"id":"x", "n":1.0,"s":"\\u0041"}';
  const other = createRowsTable([]);
  other
    .prepare("INSERT INTO rows(collectionId, id, doc, doc_sum, state) VALUES (?, 'x', ?, ?, 1)")
    .run(COLLECTION_ID, text, checksumOf(text));
  const result = runQuery(other, source, { filter: parseFilter({ n: 1, s: "A" }), sort: [] });
  expect(result.records).toEqual([text]);
});

test("[QUERY-4] without a sort records come by id; total and hasNext only with includeTotal", () => {
  const page = query({}, [], { limit: 3, offset: 2, includeTotal: true });
  expect(page.ids).toEqual([pad(2), pad(3), pad(4)]);
  expect([page.total, page.hasNext]).toEqual([COUNT, true]);
  const plain = query({}, [], { limit: 3 });
  expect("total" in plain || "hasNext" in plain).toBe(false);
  expect(query({}, [], { offset: COUNT - 1, includeTotal: true })).toMatchObject({
    ids: [pad(COUNT - 1)],
    hasNext: false,
  });
});

test("[INDEX-6] a sort by id reads the ids in order, and nothing can tie after it", () => {
  const last = query({}, ["-id", "n"], { limit: 2 });
  expect([last.ids, last.stats.candidates]).toEqual([[pad(COUNT - 1), pad(COUNT - 2)], 2]);
  expect(query({ status: "done" }, ["id"], { limit: 1, offset: 1 }).ids).toEqual([pad(5)]);
});

test("[INDEX-6] a page far into the order of ids reads no rows but its own, whatever was deleted before it", () => {
  for (const [sort, ids] of [
    [[], [pad(5_000), pad(5_001)]],
    [["-id"], [pad(COUNT - 5_001), pad(COUNT - 5_002)]],
  ] as const) {
    const page = query({}, [...sort], { limit: 2, offset: 5_000, includeTotal: true });
    expect([page.ids, page.total, page.stats.candidates]).toEqual([[...ids], COUNT, 2]);
  }
});

test("[QUERY-4] a limit or offset beyond all bounds is one beyond all records", () => {
  expect(query({}, [], { limit: 1e300, offset: COUNT - 1 }).ids).toEqual([pad(COUNT - 1)]);
  expect(query({}, [], { limit: Number.MAX_SAFE_INTEGER, offset: 1e300 }).ids).toEqual([]);
  expect(query({}, ["n"], { limit: 5, offset: Number.MAX_SAFE_INTEGER }).ids).toEqual([]);
});

test("[QUERY-4] limit and offset of 0 or less count as absent", () => {
  for (const [limit, offset] of [
    [0, 0],
    [-5, -1],
  ] as const)
    expect(query({}, [], { limit, offset }).ids.length).toBe(COUNT);
  expect(query({}, [], { limit: 5, offset: COUNT + 10, includeTotal: true })).toMatchObject({
    ids: [],
    total: COUNT,
    hasNext: false,
  });
});

test("[INDEX-6] an index narrows what is read: equality, a range, dates", () => {
  const equal = query({ n: 77 });
  expect([equal.ids.length, equal.stats.index, equal.stats.candidates]).toEqual([1, "n", 1]);
  expect(query({ n: { $gte: 4_000, $lt: 4_020 } }).stats.candidates).toBe(20);
  const after = { $date: docs[COUNT - 3]?.at.$date ?? "" };
  const dates = query({ at: { $gt: after } });
  expect([dates.ids, dates.stats.candidates]).toEqual([[pad(COUNT - 2), pad(COUNT - 1)], 2]);
});

test("[INDEX-6] a sorted window reads an index in order and stops when it is full", () => {
  const newest = query({ status: "done" }, ["-at"], { limit: 5, includeTotal: true });
  expect(newest.ids).toEqual([pad(8999), pad(8996), pad(8993), pad(8990), pad(8987)]);
  expect(newest.total).toBe(3000);
  // The row after the window tells that its last one has no tie.
  expect(newest.stats.candidates).toBeLessThanOrEqual(6);
  const ties = query({}, ["status", "-n"], { limit: 2 });
  const doing = docs.filter(({ status }) => status === "doing").sort((a, b) => b.n - a.n);
  expect(ties.ids).toEqual(doing.slice(0, 2).map(({ id }) => id));
  expect(ties.stats.candidates).toBeLessThan(COUNT / 2);
});

test("[INDEX-6] a sorted window begins and ends where a range of its path does", () => {
  for (const sort of ["n", "-n"]) {
    // Every row that is read comes to the matcher, as it does on the server's loop.
    const page = query({ n: { $gte: 3_000, $lt: 6_000 }, status: { $ne: "done" } }, [sort], {
      limit: 5,
      everyRow: true,
    });
    const expected = docs.filter(({ n, status }) => n >= 3_000 && n < 6_000 && status !== "done").map(({ n }) => n);
    const ordered = expected.sort((a, b) => (sort === "n" ? a - b : b - a)).slice(0, 5);
    expect(page.records.map((text) => JSON.parse(text).n)).toEqual(ordered);
    expect(page.stats.candidates).toBeLessThan(20);
    expect(query({ n: { $gte: 3_000, $lt: 3_003 } }, [sort], { limit: 50, everyRow: true }).records.length).toBe(3);
    // However few there are, no more are read than the window takes.
    const few = query({ n: { $gte: 3_000, $lt: 4_000 } }, [sort, "id"], { limit: 5 });
    expect(few.records.map((text) => JSON.parse(text).n)).toEqual(
      [0, 1, 2, 3, 4].map((n) => (sort === "n" ? 3_000 + n : 3_999 - n)),
    );
    expect(few.stats.candidates).toBeLessThan(10);
  }
  const dates = query({ at: { $lt: docs[5_000]?.at ?? null } }, ["-at"], { limit: 2, everyRow: true });
  expect([dates.ids, dates.stats.candidates]).toEqual([[pad(4_999), pad(4_998)], 2]);
});

test("[INDEX-6] what is asked for by id is found without reading what stands before it", () => {
  // As on the server's loop, where every row that is read comes to the matcher.
  for (const everyRow of [true, false]) {
    expect(query({ id: pad(8_000) }, [], { everyRow })).toMatchObject({ ids: [pad(8_000)], stats: { candidates: 1 } });
    expect(query({ id: { $in: [pad(3), pad(8_000)] }, n: docs[8_000]!.n }, [], { limit: 5, everyRow }).ids).toEqual([
      pad(8_000),
    ]);
    const page = query({ id: { $gt: pad(8_000) }, n: { $gte: 0 } }, ["id"], { limit: 3, everyRow });
    expect(page.ids).toEqual([pad(8_001), pad(8_002), pad(8_003)]);
    expect(page.stats.candidates).toBe(3);
  }
});

test("[INDEX-1] of arrays one element may meet the low bound of a range and another the high one", () => {
  const many = Array.from({ length: 5_000 }, (_, i) => ({ id: pad(i), v: i % 50 === 0 ? [i - 2_000, i + 2_000] : i }));
  const other = createRowsTable(many);
  indexPaths(other, ["v"]);
  const raw = { v: { $gte: 3_000, $lt: 3_010 } };
  const expected = many.filter(({ v }) =>
    Array.isArray(v) ? v.some((each) => each >= 3_000) && v.some((each) => each < 3_010) : v >= 3_000 && v < 3_010,
  );
  const { records, stats } = runQuery(other, source, { filter: parseFilter(raw), sort: [] });
  expect(records.map((text) => JSON.parse(text).id)).toEqual(expected.map(({ id }) => id));
  expect(stats.candidates).toBeLessThan(200);
});

test("[INDEX-6] a window without the sort's index fetches what an index leaves where reading in order would take longer", () => {
  // A third of a third: in the order of ids, twenty of them would be found late.
  const page = query({ status: "done", n: { $gte: 5_000, $lt: 8_000 }, at: { $gte: docs[8_990]?.at ?? null } }, [], {
    limit: 20,
  });
  expect(page.ids.length).toBe(1);
  expect(page.stats.candidates).toBeLessThan(20);
});

test("[INDEX-1] what lies in a range is counted without being read, if the range is all that is asked", () => {
  const total = (filter: Json) => query(filter, [], { limit: 1, includeTotal: true }).total;
  expect(total({ n: { $gte: 4_000 } })).toBe(5_000);
  expect(total({ n: { $gte: 1_000, $lt: 8_000 } })).toBe(7_000);
  expect(total({ $and: [{ n: { $lte: 8_000 } }, { n: { $gt: 1_000 } }] })).toBe(7_000);
  expect(total({ n: { $gte: 10, $gt: 50, $lt: 8_000 } })).toBe(7_949);
  expect(total({ n: { $gte: 1_000, $lt: 8_000 }, status: "todo" })).toBe(
    docs.filter(({ n, status }) => n >= 1_000 && n < 8_000 && status === "todo").length,
  );
  // No value is both.
  for (const $lt of ["x", true, { $date: 0 }, { x: 1 }, [1], null]) expect(total({ n: { $gte: 4_000, $lt } })).toBe(0);
  expect(total({ $or: [{ n: { $gte: 8_999 } }, { n: { $lt: 1 } }] })).toBe(2);
});

test("[INDEX-1] [QUERY-3] a descending window has ties by id ascending, short runs and long ones", () => {
  const kinds = ["a", "b", 1, 2, true, null, undefined, { $date: 5 }, { $date: "2026-01-31T09:30:00.000Z" }, ["b"]];
  // Kind k occurs 1, 2, 4 … 512 times, in an order of ids that is not the order of rows.
  const many = Array.from({ length: 1_023 }, (_, i) => ({
    id: pad((i * 577) % 1_023),
    k: kinds[Math.floor(Math.log2(i + 1))],
    odd: i % 2 === 1,
  }));
  const other = createRowsTable(many);
  indexPaths(other, ["k"]);
  const order = referenceSort(JSON.parse(JSON.stringify(many)), ["-k"]);
  for (const [filter, keep] of [
    [{}, () => true],
    [{ odd: true }, ({ odd }: { odd: boolean }) => odd],
  ] as const)
    for (const offset of [0, 1, 60, 63, 64, 65, 200, 500, 1_000]) {
      const request = { filter: parseFilter(filter), sort: parseSort(["-k"]), limit: 40, offset };
      const { records, stats } = runQuery(other, source, request);
      const expected = order.filter(keep).slice(offset, offset + 40);
      expect([offset, records.map((text) => JSON.parse(text).id)]).toEqual([offset, expected.map(({ id }) => id)]);
      expect(stats.index).toBe("k");
    }
});

test("[QUERY-3] rows with arrays take their place among the ordered ones", () => {
  expect(query({}, ["tags"], { limit: 10 }).ids.slice(0, 9)).toEqual(
    [0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000].map(pad),
  );
  expect(query({ tags: 3000 }).ids).toEqual([pad(3000)]);
  expect(query({ tags: "x" }, [], { limit: 1, includeTotal: true }).total).toBe(COUNT);
});

test("[API-10] a query that is told to stop ends with server.unavailable", () => {
  let asked = 0;
  const shouldStop = () => ++asked === 2;
  expect(() => query({ n: { $mod: [2, 1] } }, [], { shouldStop })).toThrow(
    expect.objectContaining({ code: "server.unavailable" }),
  );
  expect(asked).toBe(2);
  expect(query({ n: 77 }).ids.length).toBe(1);
});

const folder = mkdtempSync(join(tmpdir(), "svc-query-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("[INDEX-5] a read-only connection inside a Worker gives the same", async () => {
  const file = join(folder, "rows.db");
  await Bun.write(file, db.serialize());
  const code = `
    import { Database } from "bun:sqlite";
    import { checksumOf } from "../../base/checksum.ts";
import { parseFilter } from ${JSON.stringify(join(import.meta.dir, "../filter/filter-parse.ts"))};
    import { parseSort } from ${JSON.stringify(join(import.meta.dir, "../value/sort.ts"))};
    import { rowsOf } from ${JSON.stringify(join(import.meta.dir, "../rows/row-source.ts"))};
    import { runQuery } from ${JSON.stringify(join(import.meta.dir, "run-query.ts"))};
    const db = new Database(${JSON.stringify(file)}, { readonly: true });
    const request = { filter: parseFilter({ status: "done" }), sort: parseSort(["-n"]), limit: 20, includeTotal: true };
    const { records, total, stats } = runQuery(db, rowsOf(${COLLECTION_ID}), request);
    db.close();
    postMessage({ records, total, index: stats.index });
  `;
  const entry = join(folder, "worker.ts");
  await Bun.write(entry, code);
  const worker = new Worker(entry);
  const answer = await new Promise((resolve, reject) => {
    worker.onmessage = (event) => resolve(event.data);
    worker.onerror = (event) => reject(new Error(event.message));
  });
  worker.terminate();
  const here = query({ status: "done" }, ["-n"], { limit: 20, includeTotal: true });
  expect(answer).toEqual({ records: here.records, total: here.total, index: here.stats.index });
  new Database(file, { readonly: true }).close();
});
