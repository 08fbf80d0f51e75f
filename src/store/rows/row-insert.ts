import type { OwnDatabase } from "../database/own-database.ts";
import type { RowLogTable } from "./row-log-table.ts";
import { docSumOf, headSumOf } from "./row-sums.ts";
import { ROW_ABSENT, type RowState } from "./row-types.ts";

/** A row to be made. */
export interface NewRow {
  readonly id: string;
  readonly doc: string | null;
  readonly state: RowState;
  readonly lamport: number;
  readonly change: Uint8Array;
  readonly ops: number;
}

type NewRowValues = [number, string, string | null, number, number, Uint8Array, number, number, number];

/** So many new rows go into one statement, where a row costs 1.7 µs instead of 2.7; more of them gain nothing. */
const INSERTED_TOGETHER = 10;
/** The change that a row was folded with last, where none was. */
export const NO_CHANGE = new Uint8Array(0);

/** Makes rows, and notes those that have a text. */
export function createRowInserts(db: OwnDatabase, log: Pick<RowLogTable, "note">) {
  const insertion = (count: number) =>
    db.query<null, NewRowValues[number][]>(
      `INSERT INTO rows(collectionId, id, doc, state, lamport, change, ops, doc_sum, head_sum) VALUES${Array(count).fill("(?,?,?,?,?,?,?,?,?)").join()}`,
    );
  const insertOne = insertion(1);
  const insertTogether = insertion(INSERTED_TOGETHER);
  const valuesOf = (collectionId: number, { id, doc, state, lamport, change, ops }: NewRow): NewRowValues => {
    const headSum = headSumOf(state, lamport, change, ops);
    return [collectionId, id, doc, state, lamport, change, ops, docSumOf(doc), headSum];
  };
  const insert = (collectionId: number, row: NewRow): number => {
    const no = Number(insertOne.run(...valuesOf(collectionId, row)).lastInsertRowid);
    if (row.doc !== null) log.note(no, collectionId);
    return no;
  };

  return {
    insert: (
      collectionId: number,
      id: string,
      doc: string | null,
      state: RowState,
      lamport: number,
      change: Uint8Array,
      ops: number,
    ): number => insert(collectionId, { id, doc, state, lamport, change, ops }),
    /** Makes rows; answers their numbers. */
    insertAll(collectionId: number, added: readonly NewRow[]): number[] {
      const numbers: number[] = [];
      let from = 0;
      for (; from + INSERTED_TOGETHER <= added.length; from += INSERTED_TOGETHER) {
        const values: NewRowValues[number][] = [];
        for (let at = from; at < from + INSERTED_TOGETHER; at++) values.push(...valuesOf(collectionId, added[at]!));
        db.spend(INSERTED_TOGETHER - 1);
        // Rows of one statement get numbers that follow each other.
        const last = Number(insertTogether.run(...values).lastInsertRowid);
        for (let back = INSERTED_TOGETHER - 1; back >= 0; back--) {
          numbers.push(last - back);
          if (added[from + INSERTED_TOGETHER - 1 - back]!.doc !== null) log.note(last - back, collectionId);
        }
      }
      for (; from < added.length; from++) numbers.push(insert(collectionId, added[from]!));
      return numbers;
    },
    /** A row that was only touched: nothing counted reached it yet. */
    insertAbsent: (collectionId: number, id: string): number =>
      insert(collectionId, { id, doc: null, state: ROW_ABSENT, lamport: 0, change: NO_CHANGE, ops: 0 }),
  };
}
