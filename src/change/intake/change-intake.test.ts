import { expect, test } from "bun:test";
import type { CommitQueue } from "../../store/commit/commit-queue.ts";
import { createChangeIntake } from "./change-intake.ts";

/** A queue that refuses what it is given as long as another program has the file locked: nothing of it is run. */
function openLocked() {
  let isLocked = true;
  const scope = { onRollback() {}, attempt: <T>(part: () => T): T => part() };
  const queue: CommitQueue = {
    enqueue: async (run) => {
      await Promise.resolve();
      if (isLocked) throw new Error("locked");
      return run(scope);
    },
    note: () => Promise.reject(new Error("not called")),
    idle: async () => {},
    closing: () => false,
    close: async () => {},
  };
  const unlock = () => {
    isLocked = false;
  };
  return { queue, unlock };
}

test("[STORE-4] changes that a locked database refused are refused to who brought them, and later ones are taken in", async () => {
  const { queue, unlock } = openLocked();
  const intake = createChangeIntake({
    queue,
    ingest: {
      take: () => ({ kind: "known" }),
      giveUp: () => ({ kind: "known" }),
      tryUnblocked: () => false,
    },
    unblocked: {
      note() {},
      noteRecords() {},
      noteAll() {},
      due: () => false,
      takeNews: () => false,
      done() {},
      dueAfterRollback() {},
      forgetBatch() {},
    },
  });
  const settled = Promise.allSettled([intake.take([Uint8Array.of(1), Uint8Array.of(2)])]);
  const refused = await Promise.race([settled, new Promise((resolve) => setImmediate(resolve, "pending"))]);
  expect(refused).toMatchObject([{ status: "rejected", reason: { message: "locked" } }]);
  unlock();
  expect(await intake.take([Uint8Array.of(3)])).toEqual([{ kind: "known" }]);
});
