import type { Database } from "bun:sqlite";
import type { WaitKind } from "./parked-table.ts";

/** Something has come that parked changes may wait for; those behind the cursor are still to be tried. */
export interface Arrival {
  readonly kind: WaitKind;
  /** Empty: everything that changes of this kind wait for is to be tried. */
  readonly what: Uint8Array;
  /** The last parked change that was tried and stayed: what it waits for, and its id. */
  readonly afterFor: Uint8Array;
  readonly afterId: Uint8Array;
}

interface RawArrival {
  kind: string;
  what: Uint8Array;
  after_for: Uint8Array;
  after_id: Uint8Array;
}

/** What has come, until every change that waited for it was tried: durable with what came, so that a crash loses none. */
export type ArrivalTable = ReturnType<typeof createArrivalTable>;

export function createArrivalTable(db: Database) {
  const add = db.query<null, [string, Uint8Array]>(
    `INSERT INTO arrivals(kind, what, after_for, after_id) VALUES(?, ?, x'', x'')
     ON CONFLICT(kind, what) DO UPDATE SET after_for = x'', after_id = x''`,
  );
  const first = db.query<RawArrival, []>("SELECT kind, what, after_for, after_id FROM arrivals LIMIT 1");
  const moveOn = db.query<null, [Uint8Array, Uint8Array, string, Uint8Array]>(
    "UPDATE arrivals SET after_for = ?, after_id = ? WHERE kind = ? AND what = ?",
  );
  const drop = db.query<null, [string, Uint8Array]>("DELETE FROM arrivals WHERE kind = ? AND what = ?");

  return {
    /** Known already: tried from the beginning again. */
    add: (kind: WaitKind, what: Uint8Array) => void add.run(kind, what),
    first(): Arrival | undefined {
      const row = first.get();
      return row
        ? { kind: row.kind as WaitKind, what: row.what, afterFor: row.after_for, afterId: row.after_id }
        : undefined;
    },
    moveOn: ({ kind, what }: Arrival, afterFor: Uint8Array, afterId: Uint8Array) =>
      void moveOn.run(afterFor, afterId, kind, what),
    drop: ({ kind, what }: Arrival) => void drop.run(kind, what),
  };
}
