import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { scratchDir } from "../../../test/support/scratch.ts";
import { type Reindexed, reindex } from "./reindex.ts";
import { createWalCheckpointer } from "./wal-checkpointer.ts";

/** A database whose index says that its rows are unique, with rows that have these values. */
function indexed(dir: string, values: readonly number[]): string {
  const path = join(dir, `${values.join("-")}.db`);
  const db = new Database(path);
  db.exec("PRAGMA journal_mode = WAL; CREATE TABLE t(a); CREATE INDEX of_t        ON t(a)");
  for (const value of values) db.query("INSERT INTO t VALUES (?)").run(value);
  db.close();
  // SQLite does not let such an index be made over twins.
  const bytes = readFileSync(path, "latin1");
  writeFileSync(path, bytes.replace("CREATE INDEX of_t       ", "CREATE UNIQUE INDEX of_t"), "latin1");
  return path;
}

test.each([
  [[1, 2], "done"],
  [[1, 1], "twins"],
] as const)("[STORE-3] asked for the index of rows %p anew, the answer is %p", async (values, outcome: Reindexed) => {
  using dir = scratchDir("svc-reindex");
  const path = indexed(dir.path, values);
  const checkpointer = createWalCheckpointer();
  expect(await checkpointer.reindex(path, "t")).toBe(outcome);
  checkpointer.close();
  const db = new Database(path);
  expect(reindex(db, "t")).toBe(outcome);
  db.close();
});

test("[STORE-3] any other fault of making an index anew is thrown", () => {
  using db = new Database(":memory:");
  expect(() => reindex(db, "absent")).toThrow("unable to identify the object to be reindexed");
});
