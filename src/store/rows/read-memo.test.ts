import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { createReadMemo } from "./read-memo.ts";

test("a read is repeated when something was written since, and then alone", () => {
  using db = new Database(":memory:");
  db.exec("CREATE TABLE t(v)");
  let reads = 0;
  const count = createReadMemo(db)(() => {
    reads++;
    return db.query<{ n: number }, []>("SELECT count(*) AS n FROM t").get()!.n;
  });
  expect([count(), count(), reads]).toEqual([0, 0, 1]);
  db.exec("INSERT INTO t VALUES(1)");
  expect([count(), count(), reads]).toEqual([1, 1, 2]);
  db.exec("DELETE FROM t");
  expect([count(), reads]).toEqual([0, 3]);
});

test("of what is read in a transaction nothing is kept, whether it is taken back or not", () => {
  using db = new Database(":memory:");
  db.exec("CREATE TABLE t(v)");
  const count = createReadMemo(db)(() => db.query<{ n: number }, []>("SELECT count(*) AS n FROM t").get()!.n);
  expect(count()).toBe(0);
  db.exec("BEGIN; INSERT INTO t VALUES(1)");
  expect(count()).toBe(1);
  db.exec("ROLLBACK");
  expect(count()).toBe(0);
  db.exec("BEGIN; INSERT INTO t VALUES(1)");
  expect(count()).toBe(1);
  db.exec("INSERT INTO t VALUES(1); COMMIT");
  expect(count()).toBe(2);
});
