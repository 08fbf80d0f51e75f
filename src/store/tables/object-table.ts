import type { Database } from "bun:sqlite";

export interface ObjectRow {
  no: number;
  id: Uint8Array;
  derived: boolean;
  author: Uint8Array | null;
  createdMs: number;
  deleted: boolean;
  purged: boolean;
  projection: number;
  modLamport: number;
  modChange: Uint8Array | null;
  modMs: number;
}

interface RawObject {
  no: number;
  id: Uint8Array;
  derived: number;
  author: Uint8Array | null;
  created_ms: number;
  deleted: number;
  purged: number;
  projection: number;
  mod_lamport: number;
  mod_change: Uint8Array | null;
  mod_ms: number;
}

const COLUMNS = "no, id, derived, author, created_ms, deleted, purged, projection, mod_lamport, mod_change, mod_ms";

const toObject = (row: RawObject): ObjectRow => ({
  no: row.no,
  id: row.id,
  derived: row.derived === 1,
  author: row.author,
  createdMs: row.created_ms,
  deleted: row.deleted === 1,
  purged: row.purged === 1,
  projection: row.projection,
  modLamport: row.mod_lamport,
  modChange: row.mod_change,
  modMs: row.mod_ms,
});

/** What `deleted_sum` is of an object as it was stored. */
const deletedSum = (ms: string, purged: string): string => `${ms} * 2 + ${purged}`;
const DELETED_SUM = deletedSum("deleted_ms", "purged");
/** Finds objects of which it is not known any more when this device learned of their deletion, or whether they are purged. */
export const UNSURE_DELETIONS = `SELECT no FROM objects WHERE deleted_sum <> ${DELETED_SUM}`;

/** The objects of a space and the heads of their graphs. */
export function createObjectTable(db: Database) {
  const byId = db.query<RawObject, [Uint8Array]>(`SELECT ${COLUMNS} FROM objects WHERE id = ?`);
  const byNo = db.query<RawObject, [number]>(`SELECT ${COLUMNS} FROM objects WHERE no = ?`);
  const all = db.query<RawObject, []>(`SELECT ${COLUMNS} FROM objects ORDER BY no`);
  const root = db.query<{ root: Uint8Array }, [number]>("SELECT root FROM objects WHERE no = ?");
  const stale = db.query<{ no: number }, [number]>(
    `SELECT no FROM objects WHERE projection < ?1 UNION ALL SELECT no FROM objects WHERE projection > ?1`,
  );
  const insert = db.query<null, [Uint8Array, number, Uint8Array, Uint8Array | null, number, number]>(
    "INSERT INTO objects(id, derived, root, author, created_ms, projection) VALUES(?,?,?,?,?,?)",
  );
  const saveModified = db.query<null, [number, Uint8Array, number, number]>(
    "UPDATE objects SET mod_lamport = ?, mod_change = ?, mod_ms = ? WHERE no = ?",
  );
  const setDeleted = db.query<null, [number, number, number]>(
    `UPDATE objects SET deleted = ?1, deleted_ms = ?2, purged = 0, deleted_sum = ${deletedSum("?2", "0")} WHERE no = ?3`,
  );
  const purgeable = db.query<{ no: number }, [number]>(
    `SELECT no FROM objects WHERE deleted = 1 AND purged = 0 AND deleted_ms <= ? AND deleted_sum = ${DELETED_SUM}`,
  );
  const setPurged = db.query<null, [number]>(
    `UPDATE objects SET purged = 1, deleted_sum = ${deletedSum("deleted_ms", "1")} WHERE no = ?`,
  );
  const idleDerived = db.query<{ count: number }, []>(
    `SELECT count(*) AS count FROM objects o WHERE derived = 1
     AND NOT EXISTS(SELECT 1 FROM changes c WHERE c.objectNo = o.no AND c.lamport > 0)`,
  );
  const setProjection = db.query<null, [number, number]>("UPDATE objects SET projection = ? WHERE no = ?");

  return {
    byId(id: Uint8Array): ObjectRow | undefined {
      const row = byId.get(id);
      return row ? toObject(row) : undefined;
    },
    byNo(no: number): ObjectRow | undefined {
      const row = byNo.get(no);
      return row ? toObject(row) : undefined;
    },
    all: (): ObjectRow[] => all.all().map(toObject),
    root: (no: number): Uint8Array | undefined => root.get(no)?.root,
    stale: (version: number): number[] =>
      stale
        .all(version)
        .map((row) => row.no)
        .sort((a, b) => a - b),
    insert: (
      id: Uint8Array,
      rootBytes: Uint8Array,
      author: Uint8Array | undefined,
      createdMs: number,
      projection: number,
    ): number =>
      Number(insert.run(id, author ? 0 : 1, rootBytes, author ?? null, createdMs, projection).lastInsertRowid),
    saveModified: (no: number, lamport: number, change: Uint8Array, ms: number) =>
      void saveModified.run(lamport, change, ms, no),
    /** Sets whether an object is deleted. `nowMs`: when this device learned that. */
    setDeleted: (no: number, deleted: boolean, nowMs: number) => void setDeleted.run(deleted ? 1 : 0, nowMs, no),
    /** Returns the objects that were deleted until then and of which more than stubs are kept. */
    purgeable: (untilMs: number): number[] => purgeable.all(untilMs).map((row) => row.no),
    /** Counts the derived objects to which nobody has written. */
    idleDerived: (): number => idleDerived.get()!.count,
    setPurged: (no: number) => void setPurged.run(no),
    setProjection: (no: number, version: number) => void setProjection.run(version, no),
  };
}
