import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { scratchDir } from "../../test/support/scratch.ts";
import { StoredFileError } from "../protocol/storage-fault.ts";
import { isDamage } from "./database/database.ts";
import { openSpaceStore } from "./space-store.ts";

/** What opening a space's file throws after somebody did something to it. */
function faultAfter(change: (path: string) => void): unknown {
  using dir = scratchDir("svc-store");
  const path = join(dir.path, "space.db");
  openSpaceStore(path).close();
  change(path);
  try {
    openSpaceStore(path).close();
    return undefined;
  } catch (error) {
    return error;
  }
}

const running = (statement: string) => (path: string) => {
  const db = new Database(path);
  db.run(statement);
  db.close();
};

/** Turns one bit of a text that stands in the file once. */
const flipping = (text: string) => (path: string) => {
  const bytes = readFileSync(path);
  const at = bytes.indexOf(text);
  expect([at >= 0, bytes.indexOf(text, at + 1)]).toEqual([true, -1]);
  bytes[at]! ^= 1;
  writeFileSync(path, bytes);
};

test.each([
  ["a column has another name", "changes", running("ALTER TABLE changes RENAME COLUMN lamport TO lampert")],
  ["a table is gone", "unnotified", running("DROP TABLE unnotified")],
  ["an index is gone", "changes_by_writer", running("DROP INDEX changes_by_writer")],
  ["a trigger is gone", "uncounted_added", running("DROP TRIGGER uncounted_added")],
  ["a bit of a table's text was flipped", "writers", flipping("seq INTEGER NOT NULL DEFAULT 0")],
])("[STORE-2] where %s the file is damaged, and that is said before anything of it is used", (_how, name, change) => {
  const fault = faultAfter(change);
  expect(fault).toBeInstanceOf(StoredFileError);
  expect(fault).toMatchObject({ code: "damaged", message: expect.stringContaining(`: ${name} is not as`) });
});

test("[STORE-6] what was being laid down when the process ended is no part of the file that is laid down next", () => {
  using dir = scratchDir("svc-store");
  const path = join(dir.path, "space.db");
  writeFileSync(`${path}.new`, "the first bytes of");
  openSpaceStore(path).close();
  expect(existsSync(`${path}.new`)).toBe(false);
  const store = openSpaceStore(path);
  expect(store.db.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
  store.close();
});

test("[STORE-2] the log of a file that is gone is not taken for that of the one laid down in its place", () => {
  using dir = scratchDir("svc-store");
  const path = join(dir.path, "space.db");
  const gone = openSpaceStore(path);
  for (let n = 0; n < 50; n++) gone.putMeta(`note ${n}`, new Uint8Array(1_000).fill(n));
  const log = readFileSync(`${path}-wal`);
  gone.close();
  rmSync(path);
  writeFileSync(`${path}-wal`, log);
  const store = openSpaceStore(path);
  expect(store.meta("note 7")).toBeUndefined();
  expect(store.db.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
  store.putMeta("own", new Uint8Array(1));
  store.close();
  const again = openSpaceStore(path);
  expect([again.meta("own"), again.meta("note 7")]).toEqual([new Uint8Array(1), undefined]);
  again.close();
});

test("[STORE-2] a bit that was flipped in a column that an index is of is damage, too", () => {
  expect(isDamage(faultAfter(flipping("counted INTEGER NOT NULL")))).toBe(true);
});

test("[STORE-2] what somebody else added to a file is no damage", () => {
  expect(faultAfter(running("CREATE INDEX of_my_own ON changes(time)"))).toBeUndefined();
  expect(faultAfter(running("ANALYZE"))).toBeUndefined();
});

test("[STORE-2] damage is what SQLite has a code for, and a stored text that is no JSON", () => {
  using dir = scratchDir("svc-store");
  const path = join(dir.path, "words.db");
  writeFileSync(path, "no database at all. ".repeat(500));
  const faultOf = (file: string, sql: string): unknown => {
    using db = new Database(file);
    try {
      return db.query(sql).all();
    } catch (error) {
      return error;
    }
  };
  expect(isDamage(faultOf(path, "SELECT 1 FROM sqlite_schema"))).toBe(true);
  expect(isDamage(faultOf(":memory:", "SELECT json('{')"))).toBe(true);
  expect(isDamage(faultOf(":memory:", 'SELECT "malformed" FROM nothing'))).toBe(false);
});
