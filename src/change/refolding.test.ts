import { expect, test } from "bun:test";
import type { CommitQueue } from "../store/commit/commit-queue.ts";
import { createRefolding } from "./refolding.ts";

test("[CHANGE-9] a slice that could not be committed is tried again after the next commit, whatever that wrote", async () => {
  let owed = 2;
  let isDiskFull = true;
  const enqueued: number[] = [];
  const queue: Pick<CommitQueue, "enqueue" | "closing"> = {
    enqueue: async (run) => {
      enqueued.push(owed);
      if (isDiskFull) throw new Error("the disk is full");
      return run({ onRollback: () => {}, attempt: (part) => part() });
    },
    closing: () => false,
  };
  const failures: unknown[] = [];
  const projection = { isOwing: () => owed > 0, refoldSlice: () => void owed-- };
  const refolding = createRefolding(queue, projection, (error) => void failures.push(error));
  await expect(refolding.done()).rejects.toThrow("full");
  expect(failures).toHaveLength(1);
  expect(enqueued).toEqual([2]);

  isDiskFull = false;
  refolding.retry();
  await Promise.resolve();
  expect(enqueued).toEqual([2, 2]);
  refolding.retry(); // that slice did not fail: what is left of it follows its own commit
  expect(enqueued).toEqual([2, 2]);
  expect(refolding.go()).toBe(false);
  await Promise.resolve();
  expect(refolding.go()).toBe(true);
});
