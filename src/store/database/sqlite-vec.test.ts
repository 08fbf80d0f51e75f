import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { extractLibrary, loadSqliteVec } from "./sqlite-vec.ts";
import { sqliteVecLibrary } from "./sqlite-vec-library.ts";

const scratch = mkdtempSync(join(tmpdir(), "svc-vec-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const SOURCE = join(scratch, "vec0-a1b2c3d4.so");
const BYTES = Buffer.from("a native library, or near enough");
writeFileSync(SOURCE, BYTES);

const freshDir = () => mkdtempSync(join(scratch, "private-"));

describe("extraction", () => {
  test("makes a private directory with one readable copy", () => {
    const dir = join(freshDir(), "deeper");
    const path = extractLibrary(SOURCE, dir);
    expect(readFileSync(path)).toEqual(BYTES);
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    expect(readdirSync(dir)).toHaveLength(1);
  });

  test("keeps a copy that is whole", () => {
    const dir = freshDir();
    const first = extractLibrary(SOURCE, dir);
    const { ino } = statSync(first);
    expect(extractLibrary(SOURCE, dir)).toBe(first);
    expect(statSync(first).ino).toBe(ino);
  });

  test.each([
    ["truncated", BYTES.subarray(0, 5)],
    ["planted", Buffer.from("something else of whatever length")],
    ["empty", Buffer.alloc(0)],
  ])("replaces a %s copy before it can be loaded", (_what, bytes) => {
    const dir = freshDir();
    const path = extractLibrary(SOURCE, dir);
    chmodSync(path, 0o600);
    writeFileSync(path, bytes);
    expect(readFileSync(extractLibrary(SOURCE, dir))).toEqual(BYTES);
    expect(readdirSync(dir)).toHaveLength(1);
  });

  test("tightens a directory that others can enter", () => {
    const dir = join(freshDir(), "open");
    mkdirSync(dir);
    chmodSync(dir, 0o755);
    extractLibrary(SOURCE, dir);
    expect(statSync(dir).mode & 0o777).toBe(0o700);
  });

  test("gives another library another name", () => {
    const dir = freshDir();
    const other = join(scratch, "vec0-ffff.so");
    writeFileSync(other, "the next version");
    expect(extractLibrary(other, dir)).not.toBe(extractLibrary(SOURCE, dir));
  });
});

describe("loading", () => {
  test("without a library is a result, not an error", () => {
    const db = new Database(":memory:");
    expect(loadSqliteVec(db, freshDir(), null)).toEqual({ loaded: false, reason: expect.any(String) });
    expect(loadSqliteVec(db, freshDir(), join(scratch, "absent.so"))).toEqual({
      loaded: false,
      reason: expect.any(String),
    });
    expect(db.query<{ one: number }, []>("select 1 as one").get()).toEqual({ one: 1 });
  });

  test("a loaded module answers nearest neighbours", () => {
    if (sqliteVecLibrary === null || process.platform === "darwin") {
      throw new Error(`sqlite-vec's package for ${process.platform}-${process.arch} is not installed`);
    }
    const db = new Database(":memory:");
    expect(loadSqliteVec(db, freshDir())).toEqual({ loaded: true, version: expect.stringMatching(/^v\d/) });
    db.run("create virtual table v using vec0(embedding float[2])");
    db.run("insert into v(rowid, embedding) values (1, '[0, 0]'), (2, '[5, 5]'), (3, '[9, 9]')");
    const rows = db
      .query<{ rowid: number }, []>("select rowid from v where embedding match '[4, 6]' and k = 2 order by distance")
      .all();
    expect(rows.map((row) => row.rowid)).toEqual([2, 3]);
  });
});
