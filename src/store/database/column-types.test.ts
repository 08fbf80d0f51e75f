import { expect, test } from "bun:test";
import { scratchDir } from "../../../test/support/scratch.ts";
import { MistypedValueError, mendTypes, searchForMistyped } from "./column-types.ts";
import { openDatabase } from "./database.ts";
import type { OwnDatabase } from "./own-database.ts";

const BYTES = Uint8Array.of(0, 1, 0xc3, 0x28, 0xff);

/** A database in which each value of the second row is of another type than its column's. */
function withTypes(run: (db: OwnDatabase) => void): void {
  using dir = scratchDir("svc-types");
  const path = `${dir.path}/a.db`;
  const db = openDatabase(path, {
    durability: "normal",
    migrations: [
      (made) =>
        made.exec(`CREATE TABLE t(no INTEGER PRIMARY KEY, id BLOB UNIQUE, n INTEGER, s TEXT, o OPTIONAL TEXT, p SOME INTEGERS);
          CREATE INDEX t_by_n ON t(n);`),
    ],
  });
  db.run("INSERT INTO t VALUES(1, ?, 1, 'one', NULL, '1,2')", [BYTES]);
  db.run("INSERT INTO t VALUES(2, CAST(? AS TEXT), '2x', CAST('two' AS BLOB), CAST('2' AS BLOB), x'00')", [
    BYTES.subarray(1),
  ]);
  db.run("INSERT INTO t VALUES(3, NULL, NULL, NULL, NULL, NULL)");
  run(db);
  db.close();
}

test("[STORE-3] a value of another type than its column's is refused as damage when it is read, and told of", () =>
  withTypes((db) => {
    let notified = 0;
    db.onMistyped(() => notified++);
    const byNo = db.query<{ s: string }, [number]>("SELECT s FROM t WHERE no = ?");
    expect(byNo.get(1)).toEqual({ s: "one" });
    expect(() => byNo.get(2)).toThrow(MistypedValueError);
    expect(() => byNo.get(3)).toThrow(/the column s is not what was stored/);
    expect(() => db.query("SELECT n FROM t").all()).toThrow(MistypedValueError);
    expect(() => [...db.query("SELECT id FROM t").iterate()]).toThrow(MistypedValueError);
    expect(db.query("SELECT o FROM t WHERE no = 3").get()).toEqual({ o: null });
    expect(db.query("SELECT max(n) AS n, count(*) AS c FROM t WHERE no = 9").get()).toEqual({ n: null, c: 0 });
    expect(notified).toBe(4);
  }));

test("[STORE-3] values are given their types again: a blob that became a text, or the other way round, as it was", () =>
  withTypes((db) => {
    expect(db.query(searchForMistyped(db)).all()).toEqual([{ name: "t" }]);
    expect(Object.keys(mendTypes(db))).toEqual(["t"]);
    expect(db.query("SELECT * FROM t WHERE no < 3 ORDER BY no").all()).toEqual([
      { no: 1, id: BYTES, n: 1, s: "one", o: null, p: "1,2" },
      { no: 2, id: BYTES.subarray(1), n: 2, s: "two", o: "2", p: 0 },
    ]);
    // What was lost is another's no more than it was: a key is one that nobody has.
    expect(db.query("SELECT length(id) AS id, n, s, o, p FROM t WHERE no = 3").get()).toEqual({
      id: 32,
      n: 0,
      s: "",
      o: null,
      p: null,
    });
    expect(mendTypes(db)).toEqual({});
    expect(db.query(searchForMistyped(db)).all()).toEqual([]);
    expect(db.query("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
  }));
