import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createRng } from "../../test/support/rng.ts";
import { scratchDir } from "../../test/support/scratch.ts";
import { until } from "../../test/support/server/client.ts";
import { createCommitQueue, RollBackWith, type WriteScope } from "./commit-queue.ts";
import { openDatabase } from "./database.ts";
import { OutgrownError, OwnDatabase } from "./own-database.ts";
import { openSpaceStore } from "./space-store.ts";

const atOnce = (makeDurable: () => void): void => makeDurable();

function open(options: { smallRuns?: number } = {}) {
  const db = new OwnDatabase(":memory:");
  db.exec("CREATE TABLE t(n INTEGER PRIMARY KEY)");
  db.preparesLate = true;
  const seen: string[] = [];
  const hooks = {
    commit(makeDurable: () => void) {
      seen.push("beforeCommit");
      makeDurable();
      seen.push("told");
    },
    commitNotes(makeDurable: () => void) {
      makeDurable();
      seen.push("noted");
    },
    onFailure: () => void seen.push("failed"),
    // However slow the machine is, what is enqueued together is one batch.
    owedMs: () => Number.POSITIVE_INFINITY,
  };
  const queue = createCommitQueue(db, hooks, options);
  const rows = () =>
    db
      .query<{ n: number }, []>("SELECT n FROM t ORDER BY n")
      .all()
      .map((row) => row.n);
  const insert = (n: number) => () => db.query("INSERT INTO t(n) VALUES(?)").run(n);
  return { db, queue, seen, rows, insert };
}

test("[CHANGE-10] what is enqueued in one turn is one transaction, and nothing settles before it", async () => {
  const { db, queue, seen, insert } = open();
  const inside: boolean[] = [];
  const writes = [1, 2, 3].map((n) =>
    queue.enqueue(() => {
      inside.push(db.inTransaction);
      insert(n)();
      return n;
    }),
  );
  const settled: string[] = [];
  void writes[0]!.then(() => settled.push(`${db.inTransaction} ${seen.join()}`));
  expect(await Promise.all(writes)).toEqual([1, 2, 3]);
  expect(inside).toEqual([true, true, true]);
  expect(seen).toEqual(["beforeCommit", "told"]);
  expect(settled).toEqual(["false beforeCommit,told"]);
});

test("[CHANGE-10] a batch of notes alone is durable without what follows from changes; beside a change they share its commit", async () => {
  const { queue, seen, rows, insert } = open();
  await Promise.all([queue.note(insert(1)), queue.note(insert(2))]);
  expect(seen.splice(0)).toEqual(["noted"]);
  await Promise.all([queue.note(insert(3)), queue.enqueue(insert(4))]);
  expect(seen.splice(0)).toEqual(["beforeCommit", "told"]);
  await expect(queue.note(insert(4))).rejects.toThrow();
  expect(seen).toEqual(["noted"]);
  expect(rows()).toEqual([1, 2, 3, 4]);
});

test("[CHANGE-10] a write that throws is rolled back alone, with its effects in memory, newest first", async () => {
  const { queue, rows, insert } = open();
  const undone: number[] = [];
  const good = queue.enqueue(insert(1));
  const bad = queue.enqueue((scope) => {
    insert(2)();
    scope.onRollback(() => undone.push(1));
    scope.onRollback(() => undone.push(2));
    throw new Error("refused");
  });
  const after = queue.enqueue(insert(3));
  expect(await bad.catch((error: Error) => error.message)).toBe("refused");
  await Promise.all([good, after]);
  expect(rows()).toEqual([1, 3]);
  expect(undone).toEqual([2, 1]);
});

test("[CHANGE-10] a write may be rolled back and answered all the same", async () => {
  const { queue, rows, insert } = open();
  const answer = await queue.enqueue((): string => {
    insert(1)();
    throw new RollBackWith("nothing to keep");
  });
  expect(answer).toBe("nothing to keep");
  expect(rows()).toEqual([]);
});

test("[CHANGE-10] a failed COMMIT fails every waiter of the batch; the next batch is sound", async () => {
  const { db, queue, seen, rows, insert } = open();
  db.exec(
    "CREATE TABLE parent(id INTEGER PRIMARY KEY); CREATE TABLE child(p INTEGER REFERENCES parent(id) DEFERRABLE INITIALLY DEFERRED)",
  );
  db.exec("PRAGMA foreign_keys = ON");
  const first = queue.enqueue(insert(1));
  const breaking = queue.enqueue(() => db.query("INSERT INTO child(p) VALUES(7)").run());
  const outcomes = await Promise.allSettled([first, breaking]);
  expect(outcomes.map((outcome) => outcome.status)).toEqual(["rejected", "rejected"]);
  expect(seen).toEqual(["beforeCommit", "failed"]);
  expect([rows(), db.inTransaction]).toEqual([[], false]);
  await queue.enqueue(insert(2));
  expect(rows()).toEqual([2]);
});

test("[CHANGE-10] local writes go before those of others", async () => {
  const { queue } = open();
  const order: string[] = [];
  await Promise.all([
    queue.enqueue(() => order.push("remote"), "background"),
    queue.enqueue(() => order.push("local")),
  ]);
  expect(order).toEqual(["local", "remote"]);
});

test("[CHANGE-10] closing lets what is queued finish and refuses what comes later", async () => {
  const { queue, rows, insert } = open();
  const last = queue.enqueue(insert(1));
  await queue.close();
  await last;
  expect(rows()).toEqual([1]);
  expect(await queue.enqueue(insert(2)).catch((error: Error) => error.message)).toBe("the commit queue is closed");
});

test("[CHANGE-10] a part of a write that throws is undone alone, and the write goes on", async () => {
  const { queue, rows, insert } = open();
  const undone: string[] = [];
  await queue.enqueue((scope) => {
    insert(1)();
    scope.onRollback(() => undone.push("write"));
    const attempt = () =>
      scope.attempt(() => {
        insert(2)();
        scope.onRollback(() => undone.push("part"));
        throw new Error("refused");
      });
    expect(attempt).toThrow("refused");
    scope.attempt(insert(3));
  });
  expect(rows()).toEqual([1, 3]);
  expect(undone).toEqual(["part"]);
});

describe("a write that becomes large behind others of its batch", () => {
  /** A write of `count` rows that notes when it is run, and what is undone of it. */
  const large =
    ({ insert }: ReturnType<typeof open>, from: number, count: number, notes: string[]) =>
    (scope: WriteScope) => {
      notes.push("run");
      scope.onRollback(() => notes.push("undone"));
      for (let n = from; n < from + count; n++) insert(n)();
      return count;
    };

  test("[CHANGE-10] is taken back, and run anew as the first of the next batch, before what was queued behind it", async () => {
    const world = open({ smallRuns: 10 });
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
    const world = open({ smallRuns: 10 });
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
    const world = open({ smallRuns: 10 });
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
    const world = open({ smallRuns: 10 });
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

/** What a write does: insert a number, run a part of itself, or throw. */
type Step = number | readonly Step[] | "throw";

/** The rows that a list of steps leaves, or undefined where it throws. A part that throws leaves nothing of its own. */
function leaves(steps: readonly Step[]): number[] | undefined {
  const left: number[] = [];
  for (const step of steps) {
    if (step === "throw") return undefined;
    if (typeof step === "number") left.push(step);
    else left.push(...(leaves(step) ?? []));
  }
  return left;
}

for (const seed of [1, 2, Date.now() % 1_000_000]) {
  test(`[CHANGE-10] whatever throws where, exactly its own is undone, seed ${seed}`, async () => {
    const rng = createRng(seed);
    const { queue, rows, insert } = open({ smallRuns: 2 });
    let next = 0;
    const randomSteps = (depth: number): Step[] =>
      Array.from({ length: rng.int(0, 3) }, () => {
        if (rng.chance(0.2)) return "throw";
        return depth < 2 && rng.chance(0.4) ? randomSteps(depth + 1) : next++;
      });
    const memory: number[] = [];
    const run = (scope: WriteScope, steps: readonly Step[]): void => {
      for (const step of steps) {
        if (step === "throw") throw new Error("thrown on purpose");
        if (typeof step === "number") {
          insert(step)();
          memory.push(step);
          scope.onRollback(() => expect(memory.pop()).toBe(step));
        } else {
          try {
            scope.attempt(() => run(scope, step));
          } catch (error) {
            if (error instanceof OutgrownError) throw error;
            expect(String(error)).toContain("on purpose");
          }
        }
      }
    };
    const expected: number[] = [];
    for (let batch = 0; batch < 150; batch++) {
      const plans = Array.from({ length: rng.int(1, 3) }, () => randomSteps(0));
      const outcomes = await Promise.allSettled(plans.map((plan) => queue.enqueue((scope) => run(scope, plan))));
      for (const [at, plan] of plans.entries()) {
        const left = leaves(plan);
        expect(outcomes[at]!.status).toBe(left ? "fulfilled" : "rejected");
        expected.push(...(left ?? []));
      }
      expect(rows()).toEqual(expected);
      expect(memory).toEqual(expected);
    }
    expect(expected.length).toBeGreaterThan(100);
  });
}

describe("a database that another program has locked", () => {
  async function withLock(
    run: (world: { queue: ReturnType<typeof createCommitQueue>; other: Database; db: Database }) => Promise<void>,
  ) {
    using dir = scratchDir("svc-locked");
    const path = join(dir.path, "space.db");
    const db = openDatabase(path, {
      migrations: [(fresh) => fresh.exec("CREATE TABLE t(n INTEGER PRIMARY KEY)")],
      durability: "full",
    });
    const other = new Database(path);
    other.exec("BEGIN IMMEDIATE");
    const nothing = () => {};
    const queue = createCommitQueue(
      db,
      { commit: atOnce, commitNotes: atOnce, onFailure: nothing },
      { lockedWaitMs: 400 },
    );
    await run({ queue, other, db });
    other.close();
    await queue.close();
    db.close();
  }

  test("[STORE-4] the write waits off the loop and is done once the lock is gone", () =>
    withLock(async ({ queue, other, db }) => {
      let ticks = 0;
      const timer = setInterval(() => ticks++, 5);
      const written = queue.enqueue(() => db.query("INSERT INTO t(n) VALUES(1)").run().changes);
      await until(() => ticks > 5, "the loop to go on");
      other.exec("ROLLBACK");
      expect(await written).toBe(1);
      clearInterval(timer);
    }));

  test("[STORE-4] a lock that stays is a clear refusal, and later writes are tried again", () =>
    withLock(async ({ queue, other, db }) => {
      const insert = () => queue.enqueue(() => db.query("INSERT INTO t(n) VALUES(1)").run().changes);
      await expect(insert()).rejects.toMatchObject({
        code: "server.unavailable",
        message: expect.stringContaining("Another program"),
      });
      other.exec("ROLLBACK");
      expect(await insert()).toBe(1);
    }));
});

test("[STORE-7] a database and what lies beside it are for their owner alone", () => {
  using dir = scratchDir("svc-mode");
  const path = join(dir.path, "space.db");
  writeFileSync(path, "", { mode: 0o644 });
  const db = openDatabase(path, {
    migrations: [(fresh) => fresh.exec("CREATE TABLE t(n INTEGER PRIMARY KEY)")],
    durability: "full",
  });
  expect(readdirSync(dir.path).sort()).toEqual(["space.db", "space.db-shm", "space.db-wal"]);
  for (const name of readdirSync(dir.path))
    expect([name, statSync(join(dir.path, name)).mode & 0o777]).toEqual([name, 0o600]);
  db.close();
});

test("[STORE-2] a file from before the first release is refused in so many words", () => {
  using dir = scratchDir("svc-given-up");
  const path = join(dir.path, "space.db");
  const db = new Database(path);
  db.exec("PRAGMA user_version = 8");
  db.close();
  expect(() => openSpaceStore(path)).toThrow(/schema version 8, from before the first release/);
});
