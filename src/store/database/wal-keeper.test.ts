import type { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { scratchDir } from "../../../test/support/scratch.ts";
import { openDatabase, openReader } from "./database.ts";
import { createWalCheckpointer, type LogPosition } from "./wal-checkpointer.ts";
import { createWalKeeper } from "./wal-keeper.ts";

const PAGE = 4096;
/** What the keeper has COMMIT copy, should nobody else do it. */
const BACKSTOP_FRAMES = 18_000;

/** One that begins anew as soon as nobody reads an older state. */
const LONG_LOG = 13_000;

const checkpointer = createWalCheckpointer({ idleMs: 50 });
afterAll(() => checkpointer.close());

function openKept(path: string, by = checkpointer) {
  const db = openDatabase(path, {
    migrations: [(fresh) => fresh.exec("CREATE TABLE t(n INTEGER PRIMARY KEY, bytes BLOB NOT NULL)")],
    durability: "full",
  });
  const faults: unknown[] = [];
  const keeper = createWalKeeper(db, path, { checkpointer: by, onFault: (fault) => void faults.push(fault) });
  let rows = 0;
  const insert = db.query<null, [number, number]>("INSERT INTO t(n, bytes) VALUES(?, zeroblob(?))");
  return {
    db,
    keeper,
    faults,
    rows: () => rows,
    /** One commit of about so many frames, and a turn of the loop, as between two batches. */
    async write(frames: number): Promise<void> {
      db.transaction(() => void insert.run(rows++, frames * (PAGE - 16)))();
      keeper.committed();
      await Bun.sleep(0);
    },
  };
}

/** The checkpointer, and how often it was asked. */
function countedPasses() {
  const counted = {
    passes: 0,
    run(path: string) {
      counted.passes++;
      return checkpointer.run(path);
    },
    reindex: checkpointer.reindex,
    close: () => {},
  };
  return counted;
}

const position = (db: Database) => db.query("PRAGMA wal_checkpoint(NOOP)").get() as LogPosition;
const logBytes = (path: string): number => statSync(`${path}-wal`).size;
const countIn = (db: Database): number => (db.query("SELECT count(*) AS n FROM t").get() as { n: number }).n;

test("[STORE-8] under constant writes the log is copied beside the writer and begins anew", async () => {
  using dir = scratchDir("svc-wal");
  const path = join(dir.path, "kept.db");
  const counted = countedPasses();
  const kept = openKept(path, counted);
  let last = 0;
  let restarts = 0;
  const deadline = Date.now() + 60_000;
  while (restarts < 3 && Date.now() < deadline) {
    await kept.write(100);
    const { log } = position(kept.db);
    if (log < last) restarts++;
    last = log;
    // On a machine that has no time for the thread the writer would get to where COMMIT copies.
    if (log > BACKSTOP_FRAMES - 1_000) await kept.keeper.idle();
  }
  expect(restarts).toBe(3);
  expect(counted.passes).toBeGreaterThanOrEqual(restarts);
  expect(logBytes(path)).toBeLessThan(BACKSTOP_FRAMES * (PAGE + 24));
  await kept.keeper.idle();
  kept.db.close();
  const again = openReader(path);
  expect(countIn(again)).toBe(kept.rows());
  again.close();
  expect(kept.faults).toEqual([]);
});

test("[STORE-8] a reader's older state stays whole, and the log begins anew once it is done", async () => {
  using dir = scratchDir("svc-wal");
  const path = join(dir.path, "read.db");
  const kept = openKept(path);
  await kept.write(1);
  const reader = openReader(path);
  reader.exec("BEGIN");
  expect(countIn(reader)).toBe(1);
  while (position(kept.db).log < LONG_LOG) await kept.write(100);
  await kept.keeper.idle();
  expect(countIn(reader)).toBe(1);
  expect(position(kept.db).log).toBeGreaterThanOrEqual(LONG_LOG);
  reader.exec("COMMIT");
  const deadline = Date.now() + 60_000;
  while (position(kept.db).log >= LONG_LOG && Date.now() < deadline) await kept.write(100);
  expect(position(kept.db).log).toBeLessThan(LONG_LOG);
  expect(countIn(reader)).toBe(kept.rows());
  reader.close();
  await kept.keeper.idle();
  expect(kept.faults).toEqual([]);
  kept.db.close();
});

test("[STORE-8] a database that is closed while its log is copied is let go of by all", async () => {
  using dir = scratchDir("svc-wal");
  const path = join(dir.path, "closed.db");
  const counted = countedPasses();
  const kept = openKept(path, counted);
  while (counted.passes === 0) await kept.write(100);
  await kept.keeper.idle();
  kept.db.close();
  // The last connection takes the log away with it.
  expect(existsSync(`${path}-wal`)).toBe(false);
  const again = openReader(path);
  expect(countIn(again)).toBe(kept.rows());
  again.close();
  expect(kept.faults).toEqual([]);
});

test("[STORE-8] a read of the writer's own connection puts a checkpoint off, and fails nothing", async () => {
  using dir = scratchDir("svc-wal");
  const kept = openKept(join(dir.path, "reading.db"));
  for (let n = 0; n < 3; n++) await kept.write(1);
  const rows = kept.db.query("SELECT n FROM t").iterate();
  expect(rows.next().done).toBe(false);
  expect(() => position(kept.db)).toThrow("locked");
  for (let frames = 0; frames < LONG_LOG; frames += 100) await kept.write(100);
  expect(kept.rows()).toBe(3 + LONG_LOG / 100);
  rows.return?.();
  const { log } = position(kept.db);
  const deadline = Date.now() + 60_000;
  while (position(kept.db).log >= log && Date.now() < deadline) await kept.write(100);
  expect(position(kept.db).log).toBeLessThan(log);
  await kept.keeper.idle();
  expect(kept.faults).toEqual([]);
  kept.db.close();
});

test("[STORE-8] a checkpoint that fails is told of and tried again, and COMMIT copies what gets long", async () => {
  using dir = scratchDir("svc-wal");
  let asked = 0;
  const broken = {
    run: () => Promise.reject(new Error(`no thread ${++asked}`)),
    reindex: () => Promise.reject(new Error("no thread")),
    close: () => {},
  };
  const kept = openKept(join(dir.path, "broken.db"), broken);
  while (position(kept.db).checkpointed === 0) await kept.write(400);
  expect(position(kept.db).log).toBeGreaterThanOrEqual(BACKSTOP_FRAMES);
  expect(asked).toBeGreaterThan(1);
  expect(kept.faults.map(String)).toEqual(Array.from({ length: asked }, (_, n) => `Error: no thread ${n + 1}`));
  kept.db.close();
});

test("[STORE-8] the checkpointer says what is wrong, and goes on for others", async () => {
  using dir = scratchDir("svc-wal");
  const fault = await checkpointer.run(join(dir.path, "absent.db")).catch((error: unknown) => String(error));
  expect(fault).toContain("unable to open");
  const path = join(dir.path, "there.db");
  const kept = openKept(path);
  await kept.write(10);
  const { log } = position(kept.db);
  expect(await checkpointer.run(path)).toMatchObject({ log, checkpointed: log });
  kept.db.close();
});
