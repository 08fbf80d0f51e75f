import { createCommitQueue } from "../../../src/store/commit/commit-queue.ts";
import { OwnDatabase } from "../../../src/store/database/own-database.ts";

/** A hook that does nothing of its own. */
export const atOnce = (makeDurable: () => void): void => makeDurable();

export type QueueWorld = ReturnType<typeof openQueue>;

/** A commit queue over a table of numbers in memory, whose batches end when nothing waits. `seen`: what its hooks were called for. */
export function openQueue({
  ran = () => {},
  ...options
}: {
  smallRuns?: number;
  carefulFor?: number;
  ran?: () => void;
} = {}) {
  const db = new OwnDatabase(":memory:");
  db.exec("CREATE TABLE t(n INTEGER PRIMARY KEY)");
  db.preparesLate = true;
  const seen: string[] = [];
  const hooks = {
    ran,
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
