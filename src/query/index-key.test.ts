import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { createIndexSql, dropIndexSql, indexedPaths, indexKeySql, indexName, isIndexablePath } from "./index-key.ts";

const db = new Database(":memory:");
db.exec("CREATE TABLE rows(no INTEGER PRIMARY KEY, coll INTEGER, id TEXT, doc TEXT, state INTEGER, UNIQUE(coll, id))");

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
    expect([path, isIndexablePath(path), indexKeySql(path), createIndexSql(1, path)]).toEqual([
      path,
      false,
      undefined,
      undefined,
    ]);
  }
  expect(() => createIndexSql(1.5, "a")).toThrow(RangeError);
  for (const path of ["a", "__proto__", "bafyrei/x:y-z_1.name", "a b", "0.1"])
    db.exec(createIndexSql(1, path) ?? "fault");
});

test("[design 6] indexes are found by name and forgotten when dropped", () => {
  const path = "nav.pos";
  expect(indexedPaths(db, 9).has(path)).toBe(false);
  db.exec(createIndexSql(9, path) ?? "");
  db.exec(createIndexSql(90, "other") ?? "");
  expect([...indexedPaths(db, 9)]).toEqual([path]);
  expect(indexName(9, path)).toMatch(/^rows_q_9_[0-9a-f]+$/);
  db.exec(dropIndexSql(9, path));
  expect([...indexedPaths(db, 9)]).toEqual([]);
});
