import type { Database } from "bun:sqlite";
import type { WaitKind } from "./parked-table.ts";

/**
 * Something has come for which changes may wait. Parked changes are tried first, then those that are in the graph without
 * content.
 */
export interface UnblockedEntry {
  readonly kind: WaitKind;
  /** Empty: everything for which changes of this kind wait has to be tried. */
  readonly what: Uint8Array;
  readonly after: RetryCursor;
}

/**
 * The last change that was tried and still waits: what it waits for and its id, or its number once the parked changes are done.
 */
export interface RetryCursor {
  readonly waitFor: Uint8Array;
  readonly id: Uint8Array;
  readonly no: number | null;
}

interface RawUnblocked {
  kind: string;
  what: Uint8Array;
  after_for: Uint8Array;
  after_id: Uint8Array;
  after_no: number | null;
}

/**
 * What has come, until every change that waited for it was tried. It is durable together with what came, so that a crash loses
 * nothing.
 */
export type UnblockedTable = ReturnType<typeof createUnblockedTable>;

export function createUnblockedTable(db: Database) {
  const add = db.query<null, [string, Uint8Array]>(
    `INSERT INTO unblocked(kind, what, after_for, after_id, after_no) VALUES(?, ?, x'', x'', NULL)
     ON CONFLICT(kind, what) DO UPDATE SET after_for = x'', after_id = x'', after_no = NULL`,
  );
  const first = db.query<RawUnblocked, []>("SELECT kind, what, after_for, after_id, after_no FROM unblocked LIMIT 1");
  const moveOn = db.query<null, [Uint8Array, Uint8Array, number | null, string, Uint8Array]>(
    "UPDATE unblocked SET after_for = ?, after_id = ?, after_no = ? WHERE kind = ? AND what = ?",
  );
  const drop = db.query<null, [string, Uint8Array]>("DELETE FROM unblocked WHERE kind = ? AND what = ?");

  return {
    /** Adds an entry; one that exists already is gone through from its beginning again. */
    add: (kind: WaitKind, what: Uint8Array) => void add.run(kind, what),
    first(): UnblockedEntry | undefined {
      const row = first.get();
      if (!row) return undefined;
      const after = { waitFor: row.after_for, id: row.after_id, no: row.after_no };
      return { kind: row.kind as WaitKind, what: row.what, after };
    },
    moveOn: ({ kind, what }: UnblockedEntry, after: RetryCursor) =>
      void moveOn.run(after.waitFor, after.id, after.no, kind, what),
    drop: ({ kind, what }: UnblockedEntry) => void drop.run(kind, what),
  };
}
