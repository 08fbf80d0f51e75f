import type { Database } from "bun:sqlite";
import { isSpoiltText } from "../../protocol/storage-fault.ts";
import { isDamage } from "../database/database.ts";
import type { QueryIndexTable } from "./query-index-table.ts";
import type { RowLogTable } from "./row-log-table.ts";
import { docSumOf, headSumOf } from "./row-sums.ts";
import { ROW_LIVE, type RowHead, type RowKey } from "./row-types.ts";

type Restored = Omit<RowHead, "hasLocal"> & RowKey;
const AUTO_INDEX = "sqlite_autoindex_rows_1";

/**
 * Writes a row in place of one that is damaged. Triggers keep other tables in step by what a row was before, which here is
 * content that never existed. The keys for queries are therefore computed anew, and SQLite's own indexes are rebuilt where they
 * do not know the row or cannot be given its old text.
 */
export function createRowRestore(
  db: Database,
  queryIndexes: Pick<QueryIndexTable, "rekeyed">,
  log: Pick<RowLogTable, "add">,
) {
  const where = db.query<{ no: number }, [number, string]>(
    `SELECT no FROM rows INDEXED BY ${AUTO_INDEX} WHERE collectionId = ? AND id = ?`,
  );
  const stateOf = db.query<{ state: number }, [number]>("SELECT state FROM rows WHERE no = ?");
  const setKey = db.query<null, [number, string, number]>("UPDATE rows SET collectionId = ?, id = ? WHERE no = ?");
  const keyOf = db.query<{ collectionId: number; id: string }, [number]>(
    "SELECT collectionId, id FROM rows WHERE no = ?",
  );
  const update = db.query<null, [string | null, number, number, Uint8Array, number, number, number, number]>(
    "UPDATE rows SET doc = ?, state = ?, lamport = ?, change = ?, ops = ?, doc_sum = ?, head_sum = ? WHERE no = ?",
  );
  const takeTouches = db.query<null, [number, number]>("UPDATE OR IGNORE touches SET row = ? WHERE row = ?");
  const drops = ["touches WHERE row", "checkpoints WHERE row", "locals WHERE row", "rows WHERE no"].map((from) =>
    db.query<null, [number]>(`DELETE FROM ${from} = ?`),
  );
  const isKeyed = (no: number, collectionId: number, id: string): boolean => where.get(collectionId, id)?.no === no;

  const put = ({ no, collectionId, id, doc, state, lamport, change, ops }: Restored): void =>
    queryIndexes.rekeyed(collectionId, no, () => {
      const known = keyOf.get(no);
      if (known && (known.collectionId !== collectionId || known.id !== id)) setKey.run(collectionId, id, no);
      const sums = [docSumOf(doc), headSumOf(state, lamport, change, ops)] as const;
      update.run(doc, state, lamport, change, ops, ...sums, no);
      if (!isKeyed(no, collectionId, id)) db.exec(`REINDEX ${AUTO_INDEX}`);
      log.add([{ row: no, collectionId }]);
    });

  const withoutIndexes = (write: () => void): void => {
    const indexes = db
      .query<{ name: string; sql: string }, []>(
        "SELECT name, sql FROM sqlite_schema WHERE tbl_name = 'rows' AND type = 'index' AND sql IS NOT NULL",
      )
      .all();
    for (const { name } of indexes) db.exec(`DROP INDEX ${name}`);
    db.exec(`REINDEX ${AUTO_INDEX}`);
    write();
    for (const { sql } of indexes) db.exec(sql);
  };

  return {
    restore(row: Restored): void {
      const attempt = db.transaction(put);
      try {
        attempt(row);
      } catch (error) {
        if (!isDamage(error) && !isSpoiltText(error)) throw error;
        db.transaction(() => withoutIndexes(() => put(row)))();
      }
    },
    /**
     * Takes over what touched another row of the same record, if there is one: that row was made while the index did not lead to
     * this one. Returns whether it was live.
     */
    absorbTwin(no: number, collectionId: number, id: string): boolean {
      const twin = where.get(collectionId, id)?.no;
      const key = twin === undefined || twin === no ? null : keyOf.get(twin);
      if (twin === undefined || key?.id !== id || key.collectionId !== collectionId) return false;
      const isLive = stateOf.get(twin)?.state === ROW_LIVE;
      takeTouches.run(no, twin);
      for (const drop of drops) drop.run(twin);
      log.add([{ row: twin, collectionId }]);
      return isLive;
    },
    /** Whether the index of rows by their keys finds the row under its key. */
    isKeyed,
  };
}
