import type { Database } from "bun:sqlite";
import { checksumWith } from "../../base/checksum.ts";
import { docSumOf } from "./row-sums.ts";
import type { RowState } from "./row-types.ts";

export interface Checkpoint {
  lamport: number;
  change: Uint8Array;
  ops: number;
  state: RowState;
  doc: string | null;
}

interface RawCheckpoint {
  lamport: number;
  change: Uint8Array;
  ops: number;
  state: number;
  doc: string | null;
  sum: number;
}

const sumOf = ({ lamport, ops, state, doc }: Omit<RawCheckpoint, "change" | "sum">): number =>
  checksumWith(docSumOf(doc), state, lamport, ops);

/** States of records after some of their changes. A damaged checkpoint is as good as none, and is dropped when it is met. */
export function createCheckpointTable(db: Database) {
  const add = db.query<null, [number, number, Uint8Array, number, number, string | null, number]>(
    "INSERT OR REPLACE INTO checkpoints(row, lamport, change, ops, state, doc, sum) VALUES(?,?,?,?,?,?,?)",
  );
  const best = db.query<RawCheckpoint, [number, number, number, Uint8Array]>(
    `SELECT lamport, change, ops, state, doc, sum FROM checkpoints WHERE row = ? AND (lamport < ? OR (lamport = ? AND change < ?))
     ORDER BY lamport DESC, change DESC LIMIT 1`,
  );
  const positions = db.query<{ lamport: number; change: Uint8Array }, [number, number, number, Uint8Array]>(
    `SELECT lamport, change FROM checkpoints WHERE row = ? AND (lamport > ? OR (lamport = ? AND change >= ?))
     ORDER BY lamport, change`,
  );
  const at = db.query<{ state: number; doc: string | null }, [number, number, Uint8Array]>(
    "SELECT state, doc FROM checkpoints WHERE row = ? AND lamport = ? AND change = ?",
  );
  const drop = db.query<null, [number, number, Uint8Array]>(
    "DELETE FROM checkpoints WHERE row = ? AND lamport = ? AND change = ?",
  );
  const dropOfRow = db.query<null, [number]>("DELETE FROM checkpoints WHERE row = ?");
  const after = db.query<RawCheckpoint & { rowid: number; row: number }, [number, number]>(
    "SELECT rowid, row, lamport, change, ops, state, doc, sum FROM checkpoints WHERE rowid > ? ORDER BY rowid LIMIT ?",
  );
  return {
    addCheckpoint: (row: number, made: Checkpoint) =>
      void add.run(row, made.lamport, made.change, made.ops, made.state, made.doc, sumOf(made)),
    /** The newest checkpoint strictly before a position in the order. */
    checkpointBefore(row: number, lamport: number, change: Uint8Array): Checkpoint | undefined {
      for (
        let found = best.get(row, lamport, lamport, change);
        found;
        found = best.get(row, lamport, lamport, change)
      ) {
        const { sum, ...checkpoint } = found;
        if (sumOf(found) === sum) return { ...checkpoint, state: found.state as RowState };
        drop.run(row, found.lamport, found.change);
      }
      return undefined;
    },
    /** Where there are checkpoints at or after a position in the order, in order. */
    positionsOfCheckpoints: (row: number, lamport: number, change: Uint8Array) =>
      positions.all(row, lamport, lamport, change),
    checkpointAt: (row: number, position: { lamport: number; change: Uint8Array }) =>
      at.get(row, position.lamport, position.change) ?? undefined,
    dropCheckpoint: (row: number, position: { lamport: number; change: Uint8Array }) =>
      void drop.run(row, position.lamport, position.change),
    /** Forgets all checkpoints of a row. */
    dropCheckpoints: (row: number) => void dropOfRow.run(row),
    /** Looks at up to `limit` checkpoints after one, and drops those that are damaged. */
    checkCheckpoints(afterNo: number, limit: number): { last: number | undefined; damaged: number } {
      const page = after.all(afterNo, limit);
      const damaged = page.filter((each) => sumOf(each) !== each.sum);
      for (const { row, lamport, change } of damaged) drop.run(row, lamport, change);
      return { last: page.length < limit ? undefined : page.at(-1)?.rowid, damaged: damaged.length };
    },
  };
}
