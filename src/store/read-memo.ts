import type { Database } from "bun:sqlite";

/** Makes a read of one that is repeated only when something was written since. */
export type ReadMemo = <T>(read: () => T) => () => T;

/**
 * For reads that are asked for far more often than anything changes, as what a space is at is by every round. What they read
 * has to stand in this database, or in memory that moves with it. Within a transaction, which may be taken back, nothing is kept.
 */
export function createReadMemo(db: Database): ReadMemo {
  /** Of this connection, whatever became of them; it never goes back. */
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
