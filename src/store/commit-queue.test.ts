import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { createCommitQueue, RollBackWith } from "./commit-queue.ts";

function open() {
  const db = new Database(":memory:");
  db.exec("CREATE TABLE t(n INTEGER PRIMARY KEY)");
  const seen: string[] = [];
  const queue = createCommitQueue(db, {
    beforeCommit: () => void seen.push("beforeCommit"),
    told: () => void seen.push("told"),
    onFailure: () => void seen.push("failed"),
  });
  const rows = () =>
    db
      .query<{ n: number }, []>("SELECT n FROM t ORDER BY n")
      .all()
      .map((row) => row.n);
  const insert = (n: number) => () => db.query("INSERT INTO t(n) VALUES(?)").run(n);
  return { db, queue, seen, rows, insert };
}

test("[commit] what is enqueued in one turn is one transaction, and nothing settles before it", async () => {
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

test("[commit] a write that throws is rolled back alone, with its effects in memory, newest first", async () => {
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

test("[commit] a write may be rolled back and answered all the same", async () => {
  const { queue, rows, insert } = open();
  const answer = await queue.enqueue((): string => {
    insert(1)();
    throw new RollBackWith("nothing to keep");
  });
  expect(answer).toBe("nothing to keep");
  expect(rows()).toEqual([]);
});

test("[commit] a failed COMMIT fails every waiter of the batch; the next batch is sound", async () => {
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

test("[commit] local writes go before those of others", async () => {
  const { queue } = open();
  const order: string[] = [];
  await Promise.all([
    queue.enqueue(() => order.push("remote"), "background"),
    queue.enqueue(() => order.push("local")),
  ]);
  expect(order).toEqual(["local", "remote"]);
});

test("[commit] closing lets what is queued finish and refuses what comes later", async () => {
  const { queue, rows, insert } = open();
  const last = queue.enqueue(insert(1));
  await queue.close();
  await last;
  expect(rows()).toEqual([1]);
  expect(await queue.enqueue(insert(2)).catch((error: Error) => error.message)).toBe("the commit queue is closed");
});

test("[commit] a part of a write that throws is undone alone, and the write goes on", async () => {
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
