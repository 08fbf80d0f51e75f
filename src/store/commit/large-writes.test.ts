import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { scratchDir } from "../../../test/support/scratch.ts";
import { atOnce, openQueue, type QueueWorld } from "../../../test/support/worlds/queue-world.ts";
import { openDatabase } from "../database/database.ts";
import { createCommitQueue, type WriteScope } from "./commit-queue.ts";

describe("a write that becomes large behind others of its batch", () => {
  /** A write of `count` rows that notes when it is run, and what is undone of it. */
  const large =
    ({ insert }: QueueWorld, from: number, count: number, notes: string[]) =>
    (scope: WriteScope) => {
      notes.push("run");
      scope.onRollback(() => notes.push("undone"));
      for (let n = from; n < from + count; n++) insert(n)();
      return count;
    };

  test("[CHANGE-10] is taken back, and run anew as the first of the next batch, before what was queued behind it", async () => {
    const world = openQueue({ smallRuns: 10 });
    const { queue, rows, insert, seen } = world;
    const notes: string[] = [];
    const order: string[] = [];
    const settles = async (name: string, write: Promise<unknown>) => {
      await write;
      order.push(name);
    };
    await Promise.all([
      settles("small", queue.enqueue(insert(1))),
      settles("large", queue.enqueue(large(world, 2, 30, notes))),
      settles("behind", queue.enqueue(insert(32))),
    ]);
    expect(notes).toEqual(["run", "undone", "run"]);
    expect(order).toEqual(["small", "large", "behind"]);
    expect(seen).toEqual(["beforeCommit", "told", "beforeCommit", "told"]);
    expect(rows()).toEqual(Array.from({ length: 32 }, (_, at) => at + 1));
  });

  test("[CHANGE-10] goes before others of its batch where it is told to, and is run once", async () => {
    const world = openQueue({ smallRuns: 10 });
    const { queue, rows, insert, seen } = world;
    const notes: string[] = [];
    await Promise.all([
      queue.enqueue(insert(1)),
      queue.enqueue(large(world, 2, 30, notes), "background", "first"),
      queue.enqueue(insert(32)),
    ]);
    expect(notes).toEqual(["run"]);
    expect(seen).toEqual(["beforeCommit", "told", "beforeCommit", "told"]);
    expect(rows()).toHaveLength(32);
  });

  test("[CHANGE-10] is taken back also where it catches what a statement throws, or a part of it does", async () => {
    const world = openQueue({ smallRuns: 10 });
    const { queue, rows, insert } = world;
    let runs = 0;
    const catching = (scope: WriteScope) => {
      runs++;
      for (let n = 2; n < 32; n++) {
        try {
          scope.attempt(insert(n));
        } catch {}
      }
    };
    await Promise.all([queue.enqueue(insert(1)), queue.enqueue(catching)]);
    expect([runs, rows().length]).toEqual([2, 31]);
  });

  test("[CHANGE-10] is still written when the queue is closed behind it", async () => {
    const world = openQueue({ smallRuns: 10 });
    const { queue, rows, insert } = world;
    const writes = [queue.enqueue(insert(1)), queue.enqueue(large(world, 2, 30, []))];
    await queue.close();
    await Promise.all(writes);
    expect(rows()).toHaveLength(31);
  });

  test("takes about as long as alone", async () => {
    using dir = scratchDir("svc-large-write");
    const db = openDatabase(join(dir.path, "space.db"), {
      migrations: [
        (fresh) =>
          fresh.exec(`CREATE TABLE t(n INTEGER PRIMARY KEY, text TEXT); CREATE TABLE log(n INTEGER PRIMARY KEY);
            CREATE TRIGGER t_written AFTER UPDATE ON t BEGIN DELETE FROM log WHERE n = new.n; INSERT INTO log(n) VALUES(new.n); END`),
      ],
      durability: "full",
    });
    const queue = createCommitQueue(db, { commit: atOnce, commitNotes: atOnce, onFailure: () => {} });
    const update = db.query<null, [string, number]>("UPDATE t SET text = ? WHERE n = ?");
    const text = "x".repeat(1_300); // three to a page
    const ROWS = 10_000;
    db.transaction(() => {
      const insert = db.query<null, [number, string]>("INSERT INTO t(n, text) VALUES(?, ?)");
      for (let n = 0; n < ROWS; n++) insert.run(n, text);
    })();
    const write = (count: number, letter: string) =>
      queue.enqueue(() => {
        for (let n = 0; n < count; n++) update.run(text.replaceAll("x", letter), n);
      });
    const cpuMsOf = async (run: () => Promise<unknown>): Promise<number> => {
      const before = process.cpuUsage();
      await run();
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1000;
    };
    const alone = await cpuMsOf(() => write(ROWS, "a"));
    const behind = await cpuMsOf(() => Promise.all([write(1, "z"), write(ROWS, "b")]));
    await queue.close();
    db.close();
    console.log(alone, behind);
    expect(behind).toBeLessThan(3 * alone + 100); // it took some 20 times as long while it stayed behind
  });
});
