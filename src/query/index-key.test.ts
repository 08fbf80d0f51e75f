import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { createRandom, FALSE_DATES, randomDocument, SCALARS } from "../../test/support/random-json.ts";
import { COLL, createRowsTable, indexPaths } from "../../test/support/rows-table.ts";
import { createQueryIndexTable } from "../store/query-index-table.ts";
import { indexedPathOf, indexKeySql, isIndexablePath } from "./index-key.ts";
import { indexesOf } from "./query-index.ts";
import { rowsOf } from "./row-source.ts";

const db = new Database(":memory:");

function keyOf(doc: unknown, path: string): unknown {
  const row = db
    .prepare<{ k: unknown }, [string]>(`SELECT ${indexKeySql(path)} AS k FROM (SELECT ? AS doc)`)
    .get(JSON.stringify(doc));
  return row?.k instanceof Uint8Array ? Buffer.from(row.k).toString("latin1") : row?.k;
}

test("[recipes] the key keeps type classes apart and marks what only the matcher can tell", () => {
  const opaque = "\u00ff";
  const cases: [unknown, unknown][] = [
    [undefined, null],
    [null, null],
    [5, 5],
    [2 ** 60, 2 ** 60],
    ["5", "5"],
    ["a\0b", "a\0b"],
    [false, "\u0010"],
    [true, "\u0011"],
    [{ $date: "2026-01-31T09:30:00.000Z" }, " 2026-01-31T09:30:00.000Z"],
    [{ $date: "2026-01-31T09:30:00Z" }, opaque],
    [{ $date: "2026-02-30T09:30:00.000Z" }, opaque],
    [{ $date: 5 }, opaque],
    [{ $date: "2026-01-31T09:30:00.000Z", x: 1 }, opaque],
    [{}, opaque],
    [[], opaque],
    [[1], opaque],
  ];
  for (const [value, key] of cases) {
    expect([value, keyOf({ a: value }, "a")]).toEqual([value, key]);
    expect([value, keyOf({ b: { a: value } }, "b.a")]).toEqual([value, key]);
  }
  expect(keyOf({ b: [{ a: 1 }] }, "b.a")).toBe(opaque);
  expect(keyOf({ b: { c: [1] } }, "b.c.a")).toBe(opaque);
  expect(keyOf({ b: 5 }, "b.a")).toBeNull();
});

test("[design 11] user text never becomes SQL or a JSON path", () => {
  const hostile = [
    "a'b",
    'a"b',
    "a\\b",
    "a\0b",
    "",
    "a..b",
    "$date",
    "a.$x",
    "a[0]",
    "a*",
    "é",
    "a;b",
    "x".repeat(300),
  ];
  for (const path of [...hostile, "a.b.c.d.e.f.g.h.i"]) {
    const made = [path, isIndexablePath(path), indexKeySql(path), indexedPathOf(path)];
    expect(made).toEqual([path, false, undefined, undefined]);
  }
  const harmless = ["a", "__proto__", "bafyrei/x:y-z_1.name", "a b", "0.1"];
  const rows = createRowsTable([{ id: "x" }]);
  indexPaths(rows, harmless);
  expect([...indexesOf(rows, rowsOf(COLL)).keys()]).toEqual(harmless);
});

test("[design 6] an index is used from when it is filled until it is retired", () => {
  const rows = createRowsTable([{ id: "x", ...{ a: 1 } }]);
  const table = createQueryIndexTable(rows);
  const inUse = () => [[...indexesOf(rows, rowsOf(COLL)).keys()], [...table.inUse(COLL).keys()]];
  const path = indexedPathOf("a")!;
  const index = { no: table.add(COLL, path), coll: COLL, path: "a" };
  expect([inUse(), table.filling()]).toEqual([[[], []], [index]]);
  table.fill(index.no, 1);
  table.finish(index);
  expect(inUse()).toEqual([["a"], ["a"]]);
  table.retire(index);
  expect([inUse(), table.dropping()]).toEqual([[[], []], [index]]);
  expect(table.dropSome(index.no, 1)).toBe(false);
  expect(table.dropSome(index.no, 1)).toBe(true);
  expect([rows.query("SELECT * FROM query_keys").all(), table.dropping()]).toEqual([[], []]);
  // A number is never given twice: keys of the old one could be taken for keys of the new.
  expect(table.add(COLL, path)).toBe(index.no + 1);
});

test("[design 6] what a rolled back transaction said of indexes is not remembered", () => {
  const rows = createRowsTable([]);
  const table = createQueryIndexTable(rows);
  indexPaths(rows, ["a"]);
  const index = { ...table.allInUse()[0]! };
  expect([...table.inUse(COLL).keys()]).toEqual(["a"]);
  rows.run("BEGIN");
  table.retire(index);
  expect([...table.inUse(COLL).keys()]).toEqual([]);
  rows.run("ROLLBACK");
  expect([...table.inUse(COLL).keys()]).toEqual(["a"]);
});

const PATHS = ["a", "b", "a.b", "b.a", "a.0", "a.b.c"];
/** What triggers keep, and what it should be: the key as computed from each live row. */
const kept = (rows: Database, no: number) =>
  rows.query("SELECT quote(key) AS key, rid, row FROM query_keys WHERE idx = ? ORDER BY rid").all(no);
const computed = (rows: Database, path: string) =>
  rows
    .query(
      `SELECT quote(ifnull(${indexKeySql(path)}, -9e999)) AS key, id AS rid, no AS row FROM rows WHERE coll = ${COLL} AND state = 1 ORDER BY id`,
    )
    .all();

for (const seed of [1, 7, Number(process.env["FUZZ_SEED"] ?? Date.now() % 1_000_000)])
  test(`[design 6] kept keys are the computed ones after any writes, before and while an index is filled, seed ${seed}`, () => {
    const random = createRandom(seed);
    const values = [...SCALARS, ...FALSE_DATES, "\ud800", "\ufffd", "'", [], [1], {}, { b: 1 }, { b: [1] }, { c: 2 }];
    const doc = (id: string) =>
      JSON.stringify(
        random.below(2)
          ? randomDocument(random, id)
          : { id, a: random.pick(values), b: random.below(2) ? random.pick(values) : { a: random.pick(values) } },
      );
    const rows = createRowsTable([]);
    const write = () => {
      const no = 100 + random.below(60);
      switch (random.below(6)) {
        case 0:
          return rows.run("DELETE FROM rows WHERE no = ?", [no]);
        case 1:
          return rows.run("UPDATE rows SET state = ?, doc = NULL WHERE no = ?", [random.below(2) * 2, no]);
        case 2:
          return rows.run("UPDATE rows SET doc = ? WHERE no = ? AND state = 1", [doc(`r${no}`), no]);
        case 3:
          return rows.run("UPDATE rows SET doc = ?, state = 1 WHERE no = ?", [doc(`r${no}`), no]);
        default: {
          const state = random.below(4) ? 1 : random.below(3);
          const [coll, text] = [random.below(5) ? COLL : COLL + 1, state === 1 ? doc(`r${no}`) : null];
          return rows.run("INSERT OR IGNORE INTO rows(no, coll, id, doc, state) VALUES (?, ?, ?, ?, ?)", [
            no,
            coll,
            `r${no}`,
            text,
            state,
          ]);
        }
      }
    };
    const table = createQueryIndexTable(rows);
    for (let i = 0; i < 80; i++) write();
    const numbers = PATHS.map((path) => table.add(COLL, indexedPathOf(path)!));
    const unfilled = numbers.map(() => Array.from({ length: 60 }, (_, i) => 100 + i));
    for (let i = 0; i < 60; i++) {
      for (let k = random.below(4); k > 0; k--) write();
      for (const [k, no] of numbers.entries()) table.fill(no, unfilled[k]!.splice(random.below(60 - i), 1)[0]!);
    }
    for (let i = 0; i < 100; i++) {
      write();
      for (const [k, no] of numbers.entries()) {
        const context = { seed, i, path: PATHS[k] };
        expect({ ...context, keys: kept(rows, no) }).toEqual({ ...context, keys: computed(rows, PATHS[k]!) });
      }
    }
  });
