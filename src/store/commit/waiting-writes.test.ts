import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { scratchDir } from "../../../test/support/scratch.ts";
import { openDatabase } from "../database/database.ts";
import { createWaitingWrites, type WaitingWrites } from "./waiting-writes.ts";

interface World {
  db: Database;
  /** Another program's connection. */
  other: Database;
  writes: WaitingWrites;
  insert(n: number): void;
  rows(): number[];
}

async function withWrites(run: (world: World) => Promise<void>): Promise<void> {
  using dir = scratchDir("svc-waiting");
  const path = join(dir.path, "small.db");
  const migrations = [(fresh: Database) => fresh.exec("CREATE TABLE t(n INTEGER PRIMARY KEY)")];
  const db = openDatabase(path, { migrations, durability: "full" });
  using other = new Database(path);
  const writes = createWaitingWrites(db, { whose: "the account's", lockedWaitMs: 300 });
  const rows = () => db.query<{ n: number }, []>("SELECT n FROM t ORDER BY rowid").all();
  await run({
    ...{ db, other, writes },
    insert: (n) => void db.query("INSERT INTO t(n) VALUES(?)").run(n),
    rows: () => rows().map(({ n }) => n),
  });
  db.close();
}

test("[STORE-4] a write to a free database is done before the call returns, and one that throws is undone", () =>
  withWrites(async ({ writes, insert, rows }) => {
    const first = writes.write(() => insert(1));
    expect(rows()).toEqual([1]);
    await first;
    await expect(
      writes.write(() => {
        insert(2);
        throw new Error("no");
      }),
    ).rejects.toThrow("no");
    expect(rows()).toEqual([1]);
    await writes.close();
  }));

test("[STORE-4] writes to a locked database keep their order and leave the loop alone; who asked is refused in words", () =>
  withWrites(async ({ other, writes, insert, rows }) => {
    other.exec("BEGIN IMMEDIATE");
    let ticks = 0;
    const timer = setInterval(() => ticks++, 5);
    const order: number[] = [];
    const kept = [1, 2].map((n) =>
      writes.writeInTime(() => {
        insert(n);
        order.push(n);
      }),
    );
    await expect(writes.write(() => insert(9))).rejects.toMatchObject({
      code: "server.unavailable",
      message: expect.stringContaining("Another program has the account's database locked"),
    });
    expect(ticks).toBeGreaterThan(10);
    clearInterval(timer);
    const asked = writes.write(() => {
      insert(3);
      order.push(3);
    });
    other.exec("ROLLBACK");
    await Promise.all([...kept, asked]);
    expect(order).toEqual([1, 2, 3]);
    expect(rows()).toEqual([1, 2, 3]);
    await writes.close();
  }));

test("[STORE-4] closing waits no longer than a write may, and says what was not done", () =>
  withWrites(async ({ other, writes, insert, rows }) => {
    other.exec("BEGIN IMMEDIATE");
    const kept = writes.writeInTime(() => insert(1)).catch((error: Error) => error.message);
    const begunMs = performance.now();
    await writes.close();
    expect(performance.now() - begunMs).toBeGreaterThan(250);
    expect(await kept).toContain("Another program");
    await expect(writes.write(() => insert(2))).rejects.toThrow("closed");
    other.exec("ROLLBACK");
    expect(rows()).toEqual([]);
  }));
