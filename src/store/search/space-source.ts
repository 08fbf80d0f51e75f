/**
 * Reads what the search index needs of a space, over a read-only connection and in short reads, beside the space's one writer.
 */
import { cidFromDigest } from "../../crypto/cid.ts";
import { StoredFileError } from "../../protocol/storage-fault.ts";
import { isDamage, openReader } from "../database/database.ts";
import { BYTES_PER_ENTRY, type ChangedRow, unpackEntries } from "../rows/row-log-table.ts";
import { isDocSound } from "../rows/row-sums.ts";

export interface LogEntry extends ChangedRow {
  readonly seq: number;
}

export interface SourceRow {
  readonly no: number;
  readonly collectionId: number;
  readonly id: string;
  /** Null when the record is not live. */
  readonly doc: string | null;
}

export interface SourceCollection {
  readonly no: number;
  readonly object: string;
  readonly dataset: string;
  /** The object was deleted: nothing in it can be found. */
  readonly deleted: boolean;
}

/** The space's own database is damaged, so an index that is made anew from it would be no better. */
export class SourceDamagedError extends StoredFileError {
  constructor(path: string, cause: unknown) {
    super("damaged", `${path}: ${cause instanceof Error ? cause.message : cause}`);
  }
}

interface RawRow extends SourceRow {
  readonly doc_sum: number;
}

/**
 * Leaves out a damaged row. Repairing the row writes its original text, which adds an entry to the log of rows, and the index
 * then reads it.
 */
function soundRow(row: RawRow | null): SourceRow | undefined {
  if (!row) return undefined;
  const { doc_sum, ...rest } = row;
  return isDocSound({ doc: rest.doc, doc_sum }) || rest.doc === null ? rest : { ...rest, doc: null };
}

export type SpaceSource = ReturnType<typeof openSpaceSource>;

export function openSpaceSource(path: string) {
  const db = openReader(path);
  const incarnation = db.query<{ value: Uint8Array }, []>("SELECT value FROM meta WHERE key = 'row-log'");
  const bounds = db.query<{ first: number | null; last: number | null }, []>(
    `SELECT (SELECT seq + 1 - length(packed) / ${BYTES_PER_ENTRY} FROM row_log ORDER BY seq LIMIT 1) AS first,
       (SELECT max(seq) FROM row_log) AS last`,
  );
  const packedAfter = db.query<{ seq: number; packed: Uint8Array }, [number]>(
    "SELECT seq, packed FROM row_log WHERE seq > ? ORDER BY seq LIMIT 1",
  );
  const byNo = db.query<RawRow, [number]>(
    "SELECT no, collectionId, id, CASE state WHEN 1 THEN doc END AS doc, doc_sum FROM rows WHERE no = ?",
  );
  const objectRow = db.query<RawRow, [string]>(
    "SELECT no, collectionId, id, CASE state WHEN 1 THEN doc END AS doc, doc_sum FROM rows WHERE collectionId = 0 AND id = ?",
  );
  const collection = db.query<{ id: Uint8Array; deleted: number; dataset: string }, [number]>(
    "SELECT o.id, o.deleted, d.name AS dataset FROM collections c JOIN objects o ON o.no = c.objectNo JOIN datasets d ON d.no = c.datasetNo WHERE c.no = ?",
  );
  const docs = db.query<{ doc: string; doc_sum: number }, [number]>(
    "SELECT doc, doc_sum FROM rows WHERE collectionId = ? AND state = 1 ORDER BY id",
  );
  const below = db.query<RawRow, [number, number]>(
    "SELECT no, collectionId, id, doc, doc_sum FROM rows WHERE no < ? AND state = 1 ORDER BY no DESC LIMIT ?",
  );
  const collectionsBelow = db.query<{ no: number }, [number, string, number]>(
    "SELECT c.no FROM collections c JOIN datasets d ON d.no = c.datasetNo WHERE c.no < ? AND d.name = ? ORDER BY c.no DESC LIMIT ?",
  );
  const count = db.query<{ n: number }, []>("SELECT max(no) AS n FROM rows");
  const statements = [
    incarnation,
    bounds,
    packedAfter,
    byNo,
    objectRow,
    collection,
    docs,
    below,
    collectionsBelow,
    count,
  ];

  return namingSource(path, {
    incarnation: (): string => Buffer.from(incarnation.get()?.value ?? []).toString("hex"),
    /** Numbers of the first and the last entry of the log; 0 where there is none. */
    log(): { first: number; last: number } {
      const found = bounds.get();
      return { first: found?.first ?? 0, last: found?.last ?? 0 };
    },
    /** Entries with greater numbers, in their order: `limit` of them or somewhat more where there are as many. */
    entriesAfter(cursor: number, limit: number): LogEntry[] {
      const entries: LogEntry[] = [];
      while (entries.length < limit) {
        const found = packedAfter.get(entries.at(-1)?.seq ?? cursor);
        if (!found) break;
        const rows = unpackEntries(found.packed);
        const first = found.seq + 1 - rows.length;
        for (const [at, row] of rows.entries()) if (first + at > cursor) entries.push({ seq: first + at, ...row });
      }
      return entries;
    },
    row: (no: number): SourceRow | undefined => soundRow(byNo.get(no)),
    /** The row of an object in the collection of all objects. */
    objectRow: (objectId: string): SourceRow | undefined => soundRow(objectRow.get(objectId)),
    collection(no: number): SourceCollection | undefined {
      const found = collection.get(no);
      if (!found) return undefined;
      return { no, object: cidFromDigest(found.id), dataset: found.dataset, deleted: found.deleted === 1 };
    },
    docsOf: (no: number): string[] => docs.all(no).flatMap((row) => (isDocSound(row) ? [row.doc] : [])),
    /** Live rows with smaller numbers, newest first. */
    rowsBelow: (no: number, limit: number): SourceRow[] => below.all(no, limit).flatMap((row) => soundRow(row) ?? []),
    /** Collections of a dataset with smaller numbers, newest first. */
    collectionsBelow: (no: number, dataset: string, limit: number): number[] =>
      collectionsBelow.all(no, dataset, limit).map((row) => row.no),
    /** About how many rows there are. */
    rowCount: (): number => count.get()?.n ?? 0,
    close(): void {
      for (const statement of statements) statement.finalize();
      db.close();
    },
  });
}

/** Wraps the reads so that their errors say that the space's database is damaged. */
function namingSource<T extends Record<string, (...args: never[]) => unknown>>(path: string, reads: T): T {
  const named =
    (read: (...args: never[]) => unknown) =>
    (...args: never[]): unknown => {
      try {
        return read(...args);
      } catch (error) {
        throw isDamage(error) ? new SourceDamagedError(path, error) : error;
      }
    };
  return Object.fromEntries(Object.entries(reads).map(([name, read]) => [name, named(read)])) as T;
}
