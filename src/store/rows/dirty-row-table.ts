import { checksumOf, checksumWith } from "../../base/checksum.ts";
import type { OwnDatabase } from "../database/own-database.ts";

/** A position in the order of an object's changes. */
interface Position {
  lamport: number;
  change: Uint8Array;
}

/** A row into whose history something came that it was not folded with yet. */
export interface DirtyRow {
  readonly row: number;
  readonly objectNo: number;
  readonly datasetNo: number;
  /** The first and the last position at which something changed. */
  readonly from: Position;
  readonly to: Position;
  /** Whether it says what was stored. */
  readonly isSound: boolean;
}

interface RawDirtyRow {
  row: number;
  objectNo: number;
  datasetNo: number;
  from_lamport: number;
  from_change: Uint8Array;
  from_sum: number;
  to_lamport: number;
  to_change: Uint8Array;
  to_sum: number;
}

const COLUMNS = "row, objectNo, datasetNo, from_lamport, from_change, from_sum, to_lamport, to_change, to_sum";
const IS_EARLIER = "(excluded.from_lamport, excluded.from_change) < (from_lamport, from_change)";
const IS_LATER = "(excluded.to_lamport, excluded.to_change) > (to_lamport, to_change)";

/** A checksum of a position with the row that it is of. */
const sumOf = (
  { row, objectNo, datasetNo }: Pick<DirtyRow, "row" | "objectNo" | "datasetNo">,
  lamport: number,
  change: Uint8Array,
): number => checksumWith(checksumOf(change), lamport, row, objectNo, datasetNo);

const WIDENED = `ON CONFLICT(row) DO UPDATE SET
  from_lamport = CASE WHEN ${IS_EARLIER} THEN excluded.from_lamport ELSE from_lamport END,
  from_change = CASE WHEN ${IS_EARLIER} THEN excluded.from_change ELSE from_change END,
  from_sum = CASE WHEN ${IS_EARLIER} THEN excluded.from_sum ELSE from_sum END,
  to_lamport = CASE WHEN ${IS_LATER} THEN excluded.to_lamport ELSE to_lamport END,
  to_change = CASE WHEN ${IS_LATER} THEN excluded.to_change ELSE to_change END,
  to_sum = CASE WHEN ${IS_LATER} THEN excluded.to_sum ELSE to_sum END`;

/** Which rows are to be folded anew: written with what made them so, so that a crash forgets none. */
export function createDirtyRowTable(db: OwnDatabase) {
  const mark = db.query<null, [number, number, number, number, Uint8Array, number]>(
    `INSERT INTO dirty_rows(${COLUMNS}) VALUES(?1,?2,?3,?4,?5,?6,?4,?5,?6) ${WIDENED}`,
  );
  // ?1 holds the rows as JSON, each a pair of the row's number and its checksum.
  const markAll = db.query<null, [string, number, number, number, Uint8Array]>(
    `INSERT INTO dirty_rows(${COLUMNS})
     SELECT value ->> 0, ?2, ?3, ?4, ?5, value ->> 1, ?4, ?5, value ->> 1 FROM json_each(?1) WHERE true ${WIDENED}`,
  );
  const moveOn = db.query<null, [number, Uint8Array, number, number]>(
    "UPDATE dirty_rows SET from_lamport = ?, from_change = ?, from_sum = ? WHERE row = ?",
  );
  const first = db.query<RawDirtyRow, []>(
    `SELECT ${COLUMNS} FROM dirty_rows ORDER BY from_lamport, from_change LIMIT 1`,
  );
  const of = db.query<RawDirtyRow, [number]>(`SELECT ${COLUMNS} FROM dirty_rows WHERE row = ?`);
  const drop = db.query<null, [number]>("DELETE FROM dirty_rows WHERE row = ?");
  const dropOfObject = db.query<null, [number]>("DELETE FROM dirty_rows WHERE objectNo = ?");

  const toDirtyRow = (raw: RawDirtyRow | null): DirtyRow | undefined =>
    raw
      ? {
          row: raw.row,
          objectNo: raw.objectNo,
          datasetNo: raw.datasetNo,
          from: { lamport: raw.from_lamport, change: raw.from_change },
          to: { lamport: raw.to_lamport, change: raw.to_change },
          isSound:
            sumOf(raw, raw.from_lamport, raw.from_change) === raw.from_sum &&
            sumOf(raw, raw.to_lamport, raw.to_change) === raw.to_sum,
        }
      : undefined;

  return {
    /** Marks rows into whose histories something came at this position. */
    mark(rows: readonly number[], objectNo: number, datasetNo: number, { lamport, change }: Position): void {
      const pairs = rows.map((row) => [row, sumOf({ row, objectNo, datasetNo }, lamport, change)] as const);
      const [first] = pairs;
      if (pairs.length === 1 && first) mark.run(first[0], objectNo, datasetNo, lamport, change, first[1]);
      else if (pairs.length > 0) {
        db.spend(pairs.length - 1);
        markAll.run(JSON.stringify(pairs), objectNo, datasetNo, lamport, change);
      }
    },
    /** What changed before this position has been folded. */
    moveOn: (dirty: DirtyRow, from: Position): void =>
      void moveOn.run(from.lamport, from.change, sumOf(dirty, from.lamport, from.change), dirty.row),
    /** Returns the dirty row whose position is the earliest. */
    first: (): DirtyRow | undefined => toDirtyRow(first.get()),
    any: (): boolean => first.get() !== null,
    of: (row: number): DirtyRow | undefined => toDirtyRow(of.get(row)),
    drop: (row: number): void => void drop.run(row),
    dropOfObject: (objectNo: number): void => void dropOfObject.run(objectNo),
  };
}
