import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { createRandom, FALSE_DATES, randomDocument, SCALARS } from "../../../test/support/random-json.ts";
import { COLLECTION_ID, createRowsTable, indexPaths } from "../../../test/support/rows-table.ts";
import { createQueryIndexTable } from "../../store/rows/query-index-table.ts";
import { indexesOf } from "../plan/query-index.ts";
import { indexedPathOf, indexKeySql, isIndexablePath } from "./index-key.ts";
import { rowsOf } from "./row-source.ts";

const db = new Database(":memory:");

function keyOf(doc: unknown, path: string): unknown {
  const row = db
    .prepare<{ k: unknown }, [string]>(`SELECT ${indexKeySql(path)} AS k FROM (SELECT ? AS doc)`)
    .get(JSON.stringify(doc));
  return row?.k instanceof Uint8Array ? Buffer.from(row.k).toString("latin1") : row?.k;
}

test("[INDEX-1] the key keeps type classes apart and marks what only the matcher can tell", () => {
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

test("[INDEX-4] user text never becomes SQL or a JSON path", () => {
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
  expect([...indexesOf(rows, rowsOf(COLLECTION_ID)).keys()]).toEqual(harmless);
});

test("[INDEX-1] an index is used from when it is filled until it is retired", () => {
  const rows = createRowsTable([{ id: "x", ...{ a: 1 } }]);
  const table = createQueryIndexTable(rows);
  const inUse = () => [[...indexesOf(rows, rowsOf(COLLECTION_ID)).keys()], [...table.inUse(COLLECTION_ID).keys()]];
  const path = indexedPathOf("a")!;
  const index = { no: table.add(COLLECTION_ID, path), collectionId: COLLECTION_ID, path: "a" };
  expect([inUse(), table.filling()]).toEqual([[[], []], [index]]);
  table.fill(index.no, [1]);
  table.finish(index);
  expect(inUse()).toEqual([["a"], ["a"]]);
  table.retire(index);
  expect([inUse(), table.dropping()]).toEqual([[[], []], [index]]);
  expect(table.dropSome(index.no, 1)).toBe(false);
  expect(table.dropSome(index.no, 1)).toBe(true);
  expect([rows.query("SELECT * FROM query_keys").all(), table.dropping()]).toEqual([[], []]);
  // A number is never given twice: keys of the old one could be taken for keys of the new.
  expect(table.add(COLLECTION_ID, path)).toBe(index.no + 1);
});

test("[INDEX-1] what a rolled back transaction said of indexes is not remembered", () => {
  const rows = createRowsTable([]);
  const table = createQueryIndexTable(rows);
  indexPaths(rows, ["a"]);
  const index = { ...table.allInUse()[0]! };
  expect([...table.inUse(COLLECTION_ID).keys()]).toEqual(["a"]);
  rows.run("BEGIN");
  table.retire(index);
  expect([...table.inUse(COLLECTION_ID).keys()]).toEqual([]);
  rows.run("ROLLBACK");
  expect([...table.inUse(COLLECTION_ID).keys()]).toEqual(["a"]);
});

const PATHS = ["a", "b", "a.b", "b.a", "a.0", "a.b.c"];
interface Entry {
  key: string;
  row: number;
  part: number;
}
const entryOrder = (a: Entry, b: Entry) => a.row - b.row || a.part - b.part || (a.key < b.key ? -1 : 1);
/** A key with its type as text; quote() would end at a NUL. */
const exactly = (key: string) =>
  `typeof(${key}) || ' ' || CASE typeof(${key}) WHEN 'real' THEN ${key} ELSE hex(${key}) END`;
/** What triggers keep. */
const kept = (rows: Database, no: number): Entry[] =>
  rows
    .query<Entry, [number]>(`SELECT ${exactly("key")} AS key, row, part FROM query_keys WHERE idx = ?`)
    .all(no)
    .sort(entryOrder);

const keyQuery = (path: string, from: string) =>
  `SELECT ${exactly(`ifnull(${indexKeySql(path)}, -9e999)`)} AS key FROM ${from}`;
const keyOfElement = db.prepare<{ key: string }, [string]>(keyQuery("v", "(SELECT ? AS doc)"));

/** What they should keep: each live row's key as it is computed, and that of every element of an array. */
function expectedEntries(rows: Database, path: string): Entry[] {
  const live = rows
    .query<{ no: number; doc: string; key: string }, []>(
      `${keyQuery(path, "rows").replace(" AS key", " AS key, no, doc")} WHERE collectionId = ${COLLECTION_ID} AND state = 1`,
    )
    .all();
  return live
    .flatMap(({ no, doc, key }): Entry[] => {
      let value: unknown = JSON.parse(doc);
      for (const name of path.split("."))
        value = typeof value === "object" && value !== null && !Array.isArray(value) ? Reflect.get(value, name) : null;
      if (!Array.isArray(value) || value.length > 256) return [{ key, row: no, part: 0 }];
      const keys = new Set(value.map((v) => keyOfElement.get(JSON.stringify({ v }))!.key));
      return [{ key: "blob FE", row: no, part: 0 }, ...[...keys].map((each) => ({ key: each, row: no, part: 1 }))];
    })
    .sort(entryOrder);
}

for (const seed of [1, 7, Number(process.env["FUZZ_SEED"] ?? Date.now() % 1_000_000)])
  test(`[STORE-1] kept keys are the computed ones after any writes, before and while an index is filled, seed ${seed}`, () => {
    const random = createRandom(seed);
    const lists = [
      [],
      [1],
      ["x", 1, "x", null, true],
      SCALARS,
      [{ b: 1 }, [1]],
      Array.from({ length: 300 }, (_, i) => i),
    ];
    const objects = [{}, { b: 1 }, { b: [1] }, { c: 2 }, { c: ["y", { b: 1 }] }];
    const values = [...SCALARS, ...FALSE_DATES, "\ud800", "\ufffd", "'", ...lists, ...objects];
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
          const [collectionId, text] = [
            random.below(5) ? COLLECTION_ID : COLLECTION_ID + 1,
            state === 1 ? doc(`r${no}`) : null,
          ];
          return rows.run("INSERT OR IGNORE INTO rows(no, collectionId, id, doc, state) VALUES (?, ?, ?, ?, ?)", [
            no,
            collectionId,
            `r${no}`,
            text,
            state,
          ]);
        }
      }
    };
    const table = createQueryIndexTable(rows);
    for (let i = 0; i < 80; i++) write();
    const numbers = PATHS.map((path) => table.add(COLLECTION_ID, indexedPathOf(path)!));
    const unfilled = numbers.map(() => Array.from({ length: 60 }, (_, i) => 100 + i));
    for (let i = 0; i < 60; i++) {
      for (let k = random.below(4); k > 0; k--) write();
      for (const [k, no] of numbers.entries()) table.fill(no, unfilled[k]!.splice(random.below(60 - i), 1));
    }
    for (let i = 0; i < 100; i++) {
      write();
      for (const [k, no] of numbers.entries()) {
        const context = { seed, i, path: PATHS[k] };
        expect({ ...context, keys: kept(rows, no) }).toEqual({ ...context, keys: expectedEntries(rows, PATHS[k]!) });
      }
    }
  });
