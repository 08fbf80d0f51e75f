import type { Database } from "bun:sqlite";

/** Wraps a read so that it is repeated only when something was written since the last time. */
export type ReadMemo = <T>(read: () => T) => () => T;

/**
 * For reads that run far more often than anything changes, for example the state of a space, which every round reads. What they
 * read must be in this database, or in memory that changes only together with it. Within a transaction nothing is kept, because
 * it may be rolled back.
 */
export function createReadMemo(db: Database): ReadMemo {
  /** Counts all changes of this connection, including those that were rolled back; it never decreases. */
  const changesEver = db.query<{ n: number }, []>("SELECT total_changes() AS n");
  return <T>(read: () => T) => {
    let known: { readonly at: number; readonly value: T } | undefined;
    return () => {
      if (db.inTransaction) return read();
      const at = changesEver.get()!.n;
      if (known?.at !== at) known = { at, value: read() };
      return known.value;
    };
  };
}
