import type { Database } from "bun:sqlite";
import { indexKeySql } from "../rows/index-key.ts";
import { iterateStatement } from "../rows/statement-cache.ts";

const FIRST_CAPACITY = 1 << 14;

/**
 * Returns the numbers of a collection's live rows in the order of their keys at a path, so that an index can be filled from one
 * end to the other: keys in random order make every commit write most of the index's pages again. Returns an empty array for a
 * path that cannot be indexed.
 */
export function rowsInKeyOrder(db: Database, collectionId: number, path: string): Float64Array {
  const key = indexKeySql(path);
  if (key === undefined) return new Float64Array();
  // SQLite sorts on disk what does not fit into the connection's cache.
  db.exec("PRAGMA temp_store = FILE");
  try {
    let numbers = new Float64Array(FIRST_CAPACITY);
    let count = 0;
    const text = `SELECT no FROM rows WHERE collectionId = ? AND state = 1 ORDER BY ${key}, id`;
    for (const { no } of iterateStatement<{ no: number }>(db, { text, params: [collectionId] })) {
      if (count === numbers.length) {
        const larger = new Float64Array(2 * count);
        larger.set(numbers);
        numbers = larger;
      }
      numbers[count++] = no;
    }
    return numbers.slice(0, count);
  } finally {
    db.exec("PRAGMA temp_store = MEMORY");
  }
}
