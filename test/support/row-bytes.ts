import { Database } from "bun:sqlite";
import { databaseFiles } from "./database-files.ts";

/**
 * The rows of a space as a stopped server's store holds them, tombstones among them, without what is a device's own:
 * no local numbers, no device-local fields, nothing of deleted objects. Replicas that converged have the same.
 */
export function rowBytesOf(dataRoot: string, spaceId: string): string[] {
  const path = databaseFiles(dataRoot).find((name) => name.endsWith(`/${spaceId}.db`));
  if (path === undefined) throw new Error(`no database of ${spaceId} under ${dataRoot}`);
  const db = new Database(path, { readonly: true });
  try {
    return db
      .query<{ object: string | null; dataset: string | null; id: string; state: number; doc: string }, []>(
        `SELECT hex(o.id) AS object, d.name AS dataset, r.id, r.state, coalesce(l.base, r.doc) AS doc
         FROM rows r JOIN collections c ON c.no = r.collectionId LEFT JOIN locals l ON l.row = r.no
         LEFT JOIN objects o ON o.no = c.objectNo LEFT JOIN datasets d ON d.no = c.datasetNo
         WHERE r.state > 0 AND coalesce(o.deleted, 0) = 0`,
      )
      .all()
      .map(({ object, dataset, id, state, doc }) => `${object ?? "*"} ${dataset ?? "objects"} ${id} ${state} ${doc}`)
      .sort();
  } finally {
    db.close();
  }
}
