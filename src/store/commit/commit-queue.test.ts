import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createRng } from "../../../test/support/rng.ts";
import { scratchDir } from "../../../test/support/scratch.ts";
import { until } from "../../../test/support/server/client.ts";
import { atOnce, openQueue, type QueueWorld } from "../../../test/support/worlds/queue-world.ts";
import { openDatabase } from "../database/database.ts";
import { OutgrownError } from "../database/own-database.ts";
import { openSpaceStore } from "../space-store.ts";
import { createCommitQueue, RollBackWith, type WriteScope } from "./commit-queue.ts";

test("[CHANGE-10] what is enqueued in one turn is one transaction, and nothing settles before it", async () => {
  const { db, queue, seen, insert } = openQueue();
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
  const { queue, seen, rows, insert } = openQueue();
  await Promise.all([queue.note(insert(1)), queue.note(insert(2))]);
  expect(seen.splice(0)).toEqual(["noted"]);
  await Promise.all([queue.note(insert(3)), queue.enqueue(insert(4))]);
  expect(seen.splice(0)).toEqual(["beforeCommit", "told"]);
  await expect(queue.note(insert(4))).rejects.toThrow();
  expect(seen).toEqual(["noted"]);
  expect(rows()).toEqual([1, 2, 3, 4]);
});

test("[CHANGE-10] what a write calls for is enqueued once it has run, or was taken back, and shares the commit", async () => {
  const due: number[] = [];
  const world = openQueue({
    ran() {
      for (const n of due.splice(0)) void world.queue.enqueue(world.insert(n), "background");
    },
  });
  const { queue, seen, rows, insert } = world;
  const throwing = queue.enqueue(() => {
    due.push(20);
    throw new Error("refused");
  });
  const calling = queue.enqueue(() => {
    due.push(10);
    insert(1)();
  });
  await Promise.allSettled([throwing, calling]);
  expect(rows()).toEqual([1, 10, 20]);
  expect(seen).toEqual(["beforeCommit", "told"]);
});

/** A write with an effect in memory that has its undo. */
const remembered = ({ insert }: QueueWorld, memory: number[], ran: number[]) => {
  const run = (scope: WriteScope, n: number) => {
    ran.push(n);
    insert(n)();
    memory.push(n);
    scope.onRollback(() => expect(memory.pop()).toBe(n));
  };
  return {
    good: (n: number) => (scope: WriteScope) => run(scope, n),
    bad: (n: number) => (scope: WriteScope) => {
      run(scope, n);
      throw new Error("refused");
    },
  };
};

test("[CHANGE-10] a write that throws is rolled back alone, with its effects in memory, newest first", async () => {
  const world = openQueue();
  const [memory, ran]: number[][] = [[], []];
  const { good, bad } = remembered(world, memory!, ran!);
  const { queue, rows, seen } = world;
  const writes = [good(1), bad(2), good(3)].map((write) => queue.enqueue(write));
  const outcomes = await Promise.allSettled(writes);
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(rows()).toEqual([1, 3]);
  expect(memory).toEqual([1, 3]);
  // The first and the second were taken back together.
  expect(ran).toEqual([1, 2, 1, 2, 3]);
  expect(seen).toEqual(["beforeCommit", "told"]);
});

test("[CHANGE-10] after one that threw, writes are run once each, until a while was without", async () => {
  const world = openQueue({ carefulFor: 3 });
  const [memory, ran]: number[][] = [[], []];
  const { good, bad } = remembered(world, memory!, ran!);
  const { queue, rows } = world;
  const batch = (from: number) =>
    Promise.allSettled([good(from), bad(from + 1)].map((write) => queue.enqueue(write))).then(() => ran!.splice(0));
  expect(await batch(10)).toEqual([10, 11, 10, 11]);
  expect(await batch(20)).toEqual([20, 21]);
  expect(await batch(30)).toEqual([30, 31]);
  expect(await batch(40)).toEqual([40, 41, 40, 41]);
  expect(rows()).toEqual([10, 20, 30, 40]);
  expect(memory).toEqual([10, 20, 30, 40]);
});

test("[CHANGE-10] what is not to be run twice is not, whatever throws in its batch", async () => {
  const world = openQueue();
  const [memory, ran]: number[][] = [[], []];
  const { good, bad } = remembered(world, memory!, ran!);
  const { queue, rows } = world;
  const settled = Promise.allSettled([
    queue.enqueue(good(1)),
    queue.enqueue(good(2)),
    queue.note(() => good(3)({ onRollback: () => {}, attempt: (part) => part() })),
    queue.enqueue(bad(4)),
    queue.enqueue(good(5)),
    queue.enqueue(good(6), "background"),
    queue.enqueue(bad(7), "background"),
  ]);
  await settled;
  expect(ran).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(rows()).toEqual([1, 2, 3, 5, 6]);
  expect(memory).toEqual([1, 2, 3, 5, 6]);
});

test("[CHANGE-10] a write may be rolled back and answered all the same", async () => {
  const { queue, rows, insert } = openQueue();
  const answer = await queue.enqueue((): string => {
    insert(1)();
    throw new RollBackWith("nothing to keep");
  });
  expect(answer).toBe("nothing to keep");
  expect(rows()).toEqual([]);
});

test("[CHANGE-10] a failed COMMIT fails every waiter of the batch, and undoes what they did in memory; the next is sound", async () => {
  const world = openQueue();
  const { db, queue, seen, rows, insert } = world;
  const memory: number[] = [];
  const { good } = remembered(world, memory, []);
  db.exec(
    "CREATE TABLE parent(id INTEGER PRIMARY KEY); CREATE TABLE child(p INTEGER REFERENCES parent(id) DEFERRABLE INITIALLY DEFERRED)",
  );
  db.exec("PRAGMA foreign_keys = ON");
  const first = queue.enqueue(good(1));
  const breaking = queue.enqueue(() => db.query("INSERT INTO child(p) VALUES(7)").run());
  const outcomes = await Promise.allSettled([first, breaking]);
  expect(outcomes.map((outcome) => outcome.status)).toEqual(["rejected", "rejected"]);
  expect(seen).toEqual(["beforeCommit", "failed"]);
  expect([rows(), memory, db.inTransaction]).toEqual([[], [], false]);
  await queue.enqueue(insert(2));
  expect(rows()).toEqual([2]);
});

test("[CHANGE-10] local writes go before those of others", async () => {
  const { queue } = openQueue();
  const order: string[] = [];
  await Promise.all([
    queue.enqueue(() => order.push("remote"), "background"),
    queue.enqueue(() => order.push("local")),
  ]);
  expect(order).toEqual(["local", "remote"]);
});

test("[CHANGE-10] closing lets what is queued finish and refuses what comes later", async () => {
  const { queue, rows, insert } = openQueue();
  const last = queue.enqueue(insert(1));
  await queue.close();
  await last;
  expect(rows()).toEqual([1]);
  expect(await queue.enqueue(insert(2)).catch((error: Error) => error.message)).toBe("the commit queue is closed");
});

test("[CHANGE-10] a part of a write that throws is undone alone, and the write goes on", async () => {
  const { queue, rows, insert } = openQueue();
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

for (const [seed, carefulFor] of [1, 2, Date.now() % 1_000_000].flatMap((each) => [
  [each, 1] as const,
  [each, 4] as const,
])) {
  test(`[CHANGE-10] whatever throws where, exactly its own is undone, seed ${seed}, ${carefulFor} careful batches`, async () => {
    const rng = createRng(seed);
    const { queue, rows, insert } = openQueue({ smallRuns: 2, carefulFor });
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
