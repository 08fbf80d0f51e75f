import type { Statement } from "bun:sqlite";
import { lazyStatement } from "../database/lazy-statement.ts";
import type { OwnDatabase } from "../database/own-database.ts";

/** A point in the transaction to come back to. Whoever has come back to it has left it. */
export interface Savepoint {
  leave(): void;
  comeBack(): void;
}

/** The transaction that the writes of a batch share, and the savepoints in it that one of them can come back to. */
export function createBatchTransaction(db: OwnDatabase) {
  // Not by `query`, which counts them among the runs of a write.
  const statement = (sql: string) => lazyStatement(() => db.prepare(sql));
  const beginImmediate = statement("BEGIN IMMEDIATE");
  const rollback = statement("ROLLBACK");
  const commit = statement("COMMIT");
  const changesEver = lazyStatement(() => db.prepare<{ n: number }, []>("SELECT total_changes() AS n"));
  const statementsOf = (name: string) => ({
    set: statement(`SAVEPOINT ${name}`),
    drop: statement(`RELEASE ${name}`),
    backTo: statement(`ROLLBACK TO ${name}`),
  });
  const ofWrite = statementsOf("write_scope");
  const ofPart = statementsOf("part_of_write");
  /** Of this connection, when the transaction began. */
  let changesAtBegin = 0;

  const begin = (): void => {
    beginImmediate.run();
    changesAtBegin = changesEver.get()!.n;
  };
  const beginAnew = (): void => {
    rollback.run();
    begin();
  };
  const kept = ({ set, drop, backTo }: Record<"set" | "drop" | "backTo", Statement>): Savepoint => {
    set.run();
    return {
      leave: () => void drop.run(),
      comeBack() {
        backTo.run();
        drop.run();
      },
    };
  };
  const beginning: Savepoint = { leave: () => {}, comeBack: beginAnew };

  /**
   * Before the batch's first change no savepoint need be set: coming back is beginning anew. A savepoint has SQLite copy every page
   * that is changed after it, which made a page of records with an index take half as long again (docs/performance.md); and
   * at the end of each statement it walks the list of the copies, so that what a large write takes grows with the square of its
   * size.
   */
  const isBeginning = (isFirst: boolean): boolean => isFirst && changesEver.get()!.n === changesAtBegin;

  return {
    begin,
    /** Takes everything back that was written since it began, and begins again. */
    beginAnew,
    commit: (): void => void commit.run(),
    /** Where a write begins; `isFirst` of the batch. */
    writeBegins: (isFirst: boolean): Savepoint => (isBeginning(isFirst) ? beginning : kept(ofWrite)),
    /** Where a part of a write begins that may be undone alone. */
    partBegins: (isFirst: boolean): Savepoint => (isBeginning(isFirst) ? beginning : kept(ofPart)),
  };
}
