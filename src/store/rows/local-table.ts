import type { Database } from "bun:sqlite";
import { checksumOf } from "../../base/checksum.ts";
import { DamagedRowError } from "../../protocol/storage-fault.ts";
import type { SoundReads } from "./row-sums.ts";

interface RawLocal {
  base: string;
  fields: string;
  sum: number;
}

/** Separates the texts that one checksum covers; JSON holds no such character. */
const APART = "\u0000";
const sumOf = (base: string, fields: string): number => checksumOf(base + APART + fields);

/** Stores the device-local fields of rows, apart from the rows themselves. */
export function createLocalTable(db: Database, reads: SoundReads) {
  const get = db.query<RawLocal, [number]>("SELECT base, fields, sum FROM locals WHERE row = ?");
  const put = db.query<null, [number, string, string, number]>(
    `INSERT INTO locals(row, base, fields, sum) VALUES(?,?,?,?)
     ON CONFLICT(row) DO UPDATE SET base = excluded.base, fields = excluded.fields, sum = excluded.sum`,
  );
  const drop = db.query<null, [number]>("DELETE FROM locals WHERE row = ?");
  const setHasLocal = db.query<null, [number, number]>("UPDATE rows SET has_local = ? WHERE no = ?");
  const markLocals = db.query<null, []>(
    "UPDATE rows SET has_local = 1 WHERE has_local = 0 AND no IN (SELECT row FROM locals)",
  );
  const after = db.query<RawLocal & { row: number }, [number, number]>(
    "SELECT row, base, fields, sum FROM locals WHERE row > ? ORDER BY row LIMIT ?",
  );
  const isSound = ({ base, fields, sum }: RawLocal): boolean => sumOf(base, fields) === sum;
  return {
    local: (row: number): { base: string; fields: string } | undefined =>
      reads.soundly(() => {
        const found = get.get(row);
        if (found && !isSound(found)) throw new DamagedRowError(row);
        return found ?? undefined;
      }),
    /** Returns the fields if they are what was stored. */
    soundLocalFields(row: number): string | undefined {
      const found = get.get(row);
      return found && isSound(found) ? found.fields : undefined;
    },
    putLocal(row: number, base: string, fields: string): void {
      put.run(row, base, fields, sumOf(base, fields));
      setHasLocal.run(1, row);
    },
    dropLocal(row: number): void {
      drop.run(row);
      setHasLocal.run(0, row);
    },
    /** Marks the rows that have such fields. */
    markLocals: () => void markLocals.run(),
    /** Forgets the fields of a row that is gone. */
    forgetLocal: (row: number) => void drop.run(row),
    /**
     * Returns the numbers of rows with damaged fields, in a page of `limit` rows after one; `last` is absent on the last page.
     */
    damagedLocals(afterRow: number, limit: number): { last: number | undefined; rows: number[] } {
      const page = after.all(afterRow, limit);
      const rows = page.flatMap((each) => (isSound(each) ? [] : [each.row]));
      return { last: page.length < limit ? undefined : page.at(-1)?.row, rows };
    },
  };
}
