import type { Database } from "bun:sqlite";

export const ROW_LOG_SCHEMA = `
  -- Rows whose text has changed, in the order of commits: what the search index follows. A projection of rows, trimmed
  -- once it was followed; the last row of it stays, so that numbers are never given twice. seq: the number of the last of
  -- its entries; packed: those, see row-log-table.ts.
  CREATE TABLE row_log(seq INTEGER PRIMARY KEY, packed BLOB NOT NULL);
  -- Another file under the same name has another log.
  INSERT INTO meta(key, value) VALUES('row-log', randomblob(16));
`;

/** A row whose text has changed. */
export interface ChangedRow {
  readonly row: number;
  readonly collectionId: number;
}

/** So many entries at most are packed together: whoever follows the log reads about as many at a time. */
export const PACKED_TOGETHER = 500;
/** An entry is the numbers of a row and of its collection, each a double. */
export const BYTES_PER_ENTRY = 16;

const pack = (numbers: readonly number[]): Uint8Array => new Uint8Array(Float64Array.from(numbers).buffer);

/** What `pack` made, at least one entry: where the disk has cut them short there are zeros, which are no row. */
export function unpackEntries(packed: Uint8Array): ChangedRow[] {
  const count = Math.max(1, Math.ceil(packed.length / BYTES_PER_ENTRY));
  const numbers = new Float64Array(2 * count);
  new Uint8Array(numbers.buffer).set(packed);
  return Array.from({ length: count }, (_, at) => ({ row: numbers[2 * at]!, collectionId: numbers[2 * at + 1]! }));
}

/** The rows whose text has changed, in the order of commits: a batch notes them, and writes them once, before its COMMIT. */
export type RowLogTable = ReturnType<typeof createRowLogTable>;

export function createRowLogTable(db: Database) {
  const append = db.query<null, [number, Uint8Array]>(
    "INSERT INTO row_log(seq, packed) VALUES((SELECT coalesce(max(seq), 0) FROM row_log) + ?, ?)",
  );
  const trim = db.query<null, [number, number]>(
    "DELETE FROM row_log WHERE seq < ?1 AND seq < (SELECT max(seq) FROM row_log) AND seq < ?2 + (SELECT min(seq) FROM row_log)",
  );
  const head = db.query<{ seq: number | null }, []>("SELECT max(seq) AS seq FROM row_log");
  /** Numbers of rows, each followed by that of its collection. */
  let noted: number[] = [];

  const add = (numbers: readonly number[]): void => {
    for (let from = 0; from < numbers.length; from += 2 * PACKED_TOGETHER) {
      const part = numbers.slice(from, from + 2 * PACKED_TOGETHER);
      append.run(part.length / 2, pack(part));
    }
  };

  return {
    /**
     * A write of the batch under way changes the text of a row. It stays noted when that write is taken back: whoever follows the
     * log reads the row as it is.
     */
    note(row: number, collectionId: number): void {
      noted.push(row, collectionId);
    },
    /** In the transaction of the batch: writes what was noted. */
    writeNoted(): void {
      add(noted);
      if (noted.length > 0) noted = [];
    },
    /** The batch failed, or nobody follows. */
    forgetNoted(): void {
      noted = [];
    },
    /** Writes entries of what is changed outside of batches, in the same transaction. */
    add: (rows: readonly ChangedRow[]): void => add(rows.flatMap(({ row, collectionId }) => [row, collectionId])),
    /** The number of the last entry; 0 when there never was one. */
    head: (): number => head.get()?.seq ?? 0,
    /** Drops about `limit` entries before a number, but never the last ones of all. Returns 0 when there are no more to drop. */
    trim: (before: number, limit: number): number => trim.run(before, limit).changes,
  };
}
