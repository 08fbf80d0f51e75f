import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { scratchDir } from "../../test/support/scratch.ts";
import { StoredFileError, storageFault } from "./storage-fault.ts";

/** What something throws. */
function thrownBy(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

const withCode = (code: string): Error => Object.assign(new Error("as the system says it"), { code });

test("[STORE-2] [API-10] what SQLite and the system say of files has a code of its own, however deep it lies; nothing else has", () => {
  using dir = scratchDir("svc-fault");
  const path = `${dir.path}/a.db`;
  writeFileSync(path, "this is not a database ".repeat(500));
  const notOne = thrownBy(() => new Database(path).run("CREATE TABLE t(x)"));
  const absent = thrownBy(() => new Database(`${dir.path}/none/a.db`));
  const full = thrownBy(() => {
    using db = new Database(":memory:");
    db.run("PRAGMA max_page_count = 3");
    db.run("CREATE TABLE t(x)");
    db.run("INSERT INTO t VALUES(zeroblob(100000))");
  });
  const cases: [unknown, string | undefined][] = [
    [notOne, "storage.damaged"],
    [new Error(`${path}: file is not a database`, { cause: notOne }), "storage.damaged"],
    [new StoredFileError("damaged", "a record does not verify"), "storage.damaged"],
    [new StoredFileError("version", "schema version 9"), "storage.version"],
    [absent, "storage.read_only"],
    [withCode("EROFS"), "storage.read_only"],
    [full, "storage.full"],
    [withCode("ENOSPC"), "storage.full"],
    [withCode("EFBIG"), "storage.full"],
    [withCode("SQLITE_IOERR_FSYNC"), "storage.failed"],
    [thrownBy(() => JSON.parse('{"half')), "storage.damaged"],
    [thrownBy(() => new Database(":memory:").query(`SELECT '{"half' ->> '$.a'`).get()), "storage.damaged"],
    [withCode("SQLITE_BUSY"), "server.unavailable"],
    [withCode("SQLITE_BUSY_RECOVERY"), "server.unavailable"],
    [withCode("ECONNREFUSED"), undefined],
    [thrownBy(() => readFileSync(`${dir.path}/none`)), undefined],
    [new TypeError("a fault of ours"), undefined],
    ["damaged", undefined],
  ];
  for (const [thrown, code] of cases)
    expect([String(thrown), storageFault(thrown)?.code]).toEqual([String(thrown), code]);
  for (const [thrown, code] of cases)
    if (code)
      expect(storageFault(thrown)).toMatchObject({ status: code === "server.unavailable" ? 503 : 507, cause: thrown });
  expect(storageFault(withCode("SQLITE_BUSY"))?.message).toStartWith("Another program has the database locked");
});
