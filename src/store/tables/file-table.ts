import type { Database } from "bun:sqlite";
import { FILE_INFLIGHT, type FileStateNo } from "../../protocol/file-state.ts";

/**
 * refs: one row for each live file, a projection of the rows of the dataset `files`, kept in step in the same transaction, so
 * that a space's files are listed, counted and found without reading those rows. state mirrors the state of the content; a file
 * whose bytes are in its row has its own. elsewhere: another device is known to have the bytes, besides this one. contents: what
 * this device knows about a content. sent: one bit for each chunk that the network's store has acknowledged and returned. wanted:
 * somebody asked for it while nobody had it. orphan_ms: for how long nothing has referred to it, in time that the server ran.
 */
export const FILE_SCHEMA = `
  CREATE TABLE file_refs(
    file_id TEXT PRIMARY KEY, child TEXT NOT NULL, owner TEXT NOT NULL, root OPTIONAL TEXT, size INTEGER NOT NULL, ver TEXT NOT NULL,
    variant OPTIONAL TEXT, original OPTIONAL TEXT, state INTEGER NOT NULL DEFAULT 0, pinned INTEGER NOT NULL DEFAULT 0,
    elsewhere INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
  CREATE INDEX file_refs_by_version ON file_refs(ver);
  CREATE INDEX file_refs_by_owner ON file_refs(owner, ver);
  CREATE INDEX file_refs_by_root ON file_refs(root) WHERE root IS NOT NULL;
  CREATE INDEX file_refs_by_original ON file_refs(original, variant, ver) WHERE original IS NOT NULL;
  CREATE INDEX file_refs_by_state ON file_refs(state, elsewhere);
  CREATE INDEX file_refs_pinned ON file_refs(root) WHERE pinned = 1;
  CREATE INDEX file_refs_inline ON file_refs(state) WHERE root IS NULL;

  CREATE TABLE file_contents(
    root TEXT PRIMARY KEY, size INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
    last_err TEXT NOT NULL DEFAULT '', next_ms INTEGER NOT NULL DEFAULT 0, sent OPTIONAL BLOB, wanted INTEGER NOT NULL DEFAULT 0,
    orphan_ms INTEGER NOT NULL DEFAULT 0, checked_ms INTEGER NOT NULL DEFAULT 0, hash OPTIONAL BLOB, key_id OPTIONAL BLOB) WITHOUT ROWID;
  CREATE INDEX file_contents_pending ON file_contents(state, next_ms);
  CREATE INDEX file_contents_wanted ON file_contents(root) WHERE wanted = 1;
`;

export interface FileRef {
  readonly fileId: string;
  /** The derived object that holds its row. */
  readonly child: string;
  readonly owner: string;
  /** Null: the bytes are in the row. */
  readonly root: string | null;
  readonly size: number;
  readonly ver: string;
  readonly variant: string | null;
  readonly original: string | null;
  readonly state: FileStateNo;
  readonly pinned: number;
}

export interface FileContent {
  readonly root: string;
  readonly size: number;
  readonly state: FileStateNo;
  readonly attempts: number;
  readonly lastErr: string;
  readonly nextMs: number;
  readonly sent: Uint8Array | null;
  readonly wanted: number;
  readonly orphanMs: number;
  readonly hash: Uint8Array | null;
  readonly keyId: Uint8Array | null;
}

const REF = "file_id AS fileId, child, owner, root, size, ver, variant, original, state, pinned";
const CONTENT =
  "root, size, state, attempts, last_err AS lastErr, next_ms AS nextMs, sent, wanted, orphan_ms AS orphanMs, hash, key_id AS keyId";

/** Writes happen inside the commit queue's transaction. */
export type FileTable = ReturnType<typeof createFileTable>;

export function createFileTable(db: Database) {
  const ref = db.query<FileRef, [string]>(`SELECT ${REF} FROM file_refs WHERE file_id = ?`);
  const putRef = db.query<
    null,
    [string, string, string, string | null, number, string, string | null, string | null, number]
  >(
    `INSERT INTO file_refs(file_id, child, owner, root, size, ver, variant, original, state) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT(file_id) DO UPDATE SET child = excluded.child, owner = excluded.owner, root = excluded.root,
       size = excluded.size, ver = excluded.ver, variant = excluded.variant, original = excluded.original`,
  );
  const dropRef = db.query<null, [string]>("DELETE FROM file_refs WHERE file_id = ?");
  const dropOwner = db.query<{ root: string | null }, [string]>("DELETE FROM file_refs WHERE owner = ? RETURNING root");
  const newest = db.query<FileRef, [number]>(`SELECT ${REF} FROM file_refs ORDER BY ver DESC, file_id DESC LIMIT ?`);
  const newestOf = db.query<FileRef, [string, number]>(
    `SELECT ${REF} FROM file_refs WHERE owner = ? ORDER BY ver DESC, file_id DESC LIMIT ?`,
  );
  const anyOf = db.query<{ one: number }, [string]>("SELECT 1 AS one FROM file_refs WHERE owner = ? LIMIT 1");
  const variantsOf = db.query<FileRef, [string, number]>(
    `SELECT ${REF} FROM file_refs WHERE original = ? ORDER BY variant, ver LIMIT ?`,
  );
  const variant = db.query<FileRef, [string, string]>(
    `SELECT ${REF} FROM file_refs WHERE original = ? AND variant = ? ORDER BY ver DESC LIMIT 1`,
  );
  const refsOfRoot = db.query<FileRef, [string]>(`SELECT ${REF} FROM file_refs WHERE root = ?`);
  const isNamed = db.query<{ one: number }, [string]>("SELECT 1 AS one FROM file_refs WHERE root = ? LIMIT 1");
  const isPinned = db.query<{ one: number }, [string]>(
    "SELECT 1 AS one FROM file_refs WHERE root = ? AND pinned = 1 LIMIT 1",
  );
  const setPinned = db.query<null, [number, string]>("UPDATE file_refs SET pinned = ? WHERE file_id = ?");
  const setRefState = db.query<null, [number, string]>("UPDATE file_refs SET state = ? WHERE file_id = ?");
  const setElsewhere = db.query<null, [number, string]>("UPDATE file_refs SET elsewhere = ? WHERE root = ?");
  const setRootState = db.query<null, [number, string]>("UPDATE file_refs SET state = ? WHERE root = ?");
  const counts = db.query<{ state: FileStateNo; elsewhere: number; count: number }, []>(
    "SELECT state, elsewhere, count(*) AS count FROM file_refs GROUP BY state, elsewhere",
  );
  const total = db.query<{ count: number }, []>("SELECT count(*) AS count FROM file_refs");
  const inline = db.query<FileRef, [number, number]>(
    `SELECT ${REF} FROM file_refs WHERE root IS NULL AND state = ? LIMIT ?`,
  );
  const content = db.query<FileContent, [string]>(`SELECT ${CONTENT} FROM file_contents WHERE root = ?`);
  const addContent = db.query<null, [string, number]>(
    "INSERT INTO file_contents(root, size) VALUES(?, ?) ON CONFLICT(root) DO UPDATE SET orphan_ms = 0",
  );
  const prove = db.query<null, [string, number, Uint8Array, Uint8Array]>(
    `INSERT INTO file_contents(root, size, hash, key_id) VALUES(?, ?, ?, ?)
     ON CONFLICT(root) DO UPDATE SET size = excluded.size, hash = excluded.hash, key_id = excluded.key_id, orphan_ms = 0`,
  );
  const dropContent = db.query<null, [string]>("DELETE FROM file_contents WHERE root = ?");
  const setContentState = db.query<null, [number, number, string, number, string]>(
    "UPDATE file_contents SET state = ?, attempts = ?, last_err = ?, next_ms = ? WHERE root = ?",
  );
  const setSent = db.query<null, [Uint8Array | null, string]>("UPDATE file_contents SET sent = ? WHERE root = ?");
  const setWanted = db.query<null, [number, string]>("UPDATE file_contents SET wanted = ? WHERE root = ?");
  const setChecked = db.query<null, [number, string]>("UPDATE file_contents SET checked_ms = ? WHERE root = ?");
  const pending = db.query<FileContent, [number, number, string, number]>(
    `SELECT ${CONTENT} FROM file_contents c WHERE state = ? AND next_ms <= ? AND root > ?
       AND EXISTS(SELECT 1 FROM file_refs r WHERE r.root = c.root) ORDER BY root LIMIT ?`,
  );
  const wanted = db.query<FileContent, [string, number]>(
    `SELECT ${CONTENT} FROM file_contents WHERE wanted = 1 AND root > ? ORDER BY root LIMIT ?`,
  );
  const pinnedContents = db.query<FileContent, [string, number]>(
    `SELECT ${CONTENT} FROM file_contents WHERE root IN (SELECT root FROM file_refs WHERE pinned = 1) AND root > ?
       ORDER BY root LIMIT ?`,
  );
  const allContents = db.query<FileContent, [string, number]>(
    `SELECT ${CONTENT} FROM file_contents WHERE root > ? ORDER BY root LIMIT ?`,
  );
  const oldestChecked = db.query<FileContent, [number]>(
    `SELECT ${CONTENT} FROM file_contents WHERE state = 1 AND checked_ms < ? ORDER BY checked_ms LIMIT 1`,
  );
  const undoDurable = db.query<null, []>(
    "UPDATE file_contents SET state = 0, next_ms = 0, sent = NULL WHERE state = 1",
  );
  const undoDurableRefs = db.query<{ fileId: string; root: string | null }, []>(
    "UPDATE file_refs SET state = 0 WHERE state = 1 RETURNING file_id AS fileId, root",
  );
  const orphans = db.query<FileContent, [number]>(
    `SELECT ${CONTENT} FROM file_contents c WHERE NOT EXISTS(SELECT 1 FROM file_refs r WHERE r.root = c.root) LIMIT ?`,
  );
  const age = db.query<null, [number]>(
    `UPDATE file_contents SET orphan_ms = orphan_ms + ?
     WHERE NOT EXISTS(SELECT 1 FROM file_refs r WHERE r.root = file_contents.root)`,
  );
  const renew = db.query<null, []>(
    `UPDATE file_contents SET orphan_ms = 0
     WHERE orphan_ms > 0 AND EXISTS(SELECT 1 FROM file_refs r WHERE r.root = file_contents.root)`,
  );
  const COLLECTIONS = "datasets d JOIN collections c ON c.datasetNo = d.no JOIN objects o ON o.no = c.objectNo";
  const liveRows = db.query<{ live: number | null }, [string]>(
    `SELECT sum(c.live) AS live FROM ${COLLECTIONS} WHERE d.name = ? AND o.deleted = 0`,
  );
  const holders = db.query<{ objectNo: number }, [string]>(
    `SELECT c.objectNo FROM ${COLLECTIONS} WHERE d.name = ? AND o.deleted = 0`,
  );
  const clearRefs = db.query<null, []>("DELETE FROM file_refs");
  const isWaiting = db.query<{ one: number }, []>(
    "SELECT 1 AS one FROM (SELECT 1 FROM parked LIMIT 1) UNION ALL SELECT 1 FROM (SELECT 1 FROM pending_bodies LIMIT 1)",
  );

  return {
    ref: (fileId: string): FileRef | undefined => ref.get(fileId) ?? undefined,
    /**
     * Stores the reference of a file whose row was folded. Its content is no orphan any more; if it becomes one again, its grace
     * period begins anew.
     */
    putRef(entry: Omit<FileRef, "state" | "pinned">): void {
      if (entry.root !== null) addContent.run(entry.root, entry.size);
      const state = entry.root === null ? FILE_INFLIGHT : (content.get(entry.root)?.state ?? FILE_INFLIGHT);
      putRef.run(
        entry.fileId,
        entry.child,
        entry.owner,
        entry.root,
        entry.size,
        entry.ver,
        entry.variant,
        entry.original,
        state,
      );
    },
    dropRef: (fileId: string) => void dropRef.run(fileId),
    /** Forgets the files of an object; returns the contents that they named. */
    dropOwner: (owner: string): string[] => dropOwner.all(owner).flatMap(({ root }) => root ?? []),
    newest: (owner: string | undefined, limit: number): FileRef[] =>
      owner === undefined ? newest.all(limit) : newestOf.all(owner, limit),
    hasAny: (owner: string): boolean => anyOf.get(owner) !== null,
    variantsOf: (fileId: string, limit: number) => variantsOf.all(fileId, limit),
    /** Returns the newest variant of this kind. */
    variant: (fileId: string, tag: string): FileRef | undefined => variant.get(fileId, tag) ?? undefined,
    refsOfRoot: (root: string) => refsOfRoot.all(root),
    isNamed: (root: string): boolean => isNamed.get(root) !== null,
    isPinned: (root: string): boolean => isPinned.get(root) !== null,
    setPinned: (fileId: string, pinned: boolean) => void setPinned.run(pinned ? 1 : 0, fileId),
    setRefState: (fileId: string, state: FileStateNo) => void setRefState.run(state, fileId),
    setElsewhere: (root: string, isElsewhere: boolean) => void setElsewhere.run(isElsewhere ? 1 : 0, root),
    counts: () => counts.all(),
    total: (): number => total.get()?.count ?? 0,
    /** Returns files whose bytes are in their rows. */
    inline: (state: FileStateNo, limit: number) => inline.all(state, limit),

    content: (root: string): FileContent | undefined => content.get(root) ?? undefined,
    dropContent: (root: string) => void dropContent.run(root),
    addContent: (root: string, size: number) => void addContent.run(root, size),
    /** Notes that the bytes under this root were here, with their size, hash and key. */
    prove: (root: string, size: number, hash: Uint8Array, keyId: Uint8Array) => void prove.run(root, size, hash, keyId),
    setState(root: string, state: FileStateNo, why: { attempts: number; lastErr: string; nextMs: number }): void {
      setContentState.run(state, why.attempts, why.lastErr, why.nextMs, root);
      setRootState.run(state, root);
    },
    setSent: (root: string, sent: Uint8Array | null) => void setSent.run(sent, root),
    setWanted: (root: string, isWanted: boolean) => void setWanted.run(isWanted ? 1 : 0, root),
    setChecked: (root: string, atMs: number) => void setChecked.run(atMs, root),
    /** Returns contents in a state that files name and that are due, by root, after a given one. */
    pending: (state: FileStateNo, nowMs: number, after: string, limit: number) =>
      pending.all(state, nowMs, after, limit),
    wanted: (after: string, limit: number) => wanted.all(after, limit),
    pinnedContents: (after: string, limit: number) => pinnedContents.all(after, limit),
    contents: (after: string, limit: number) => allContents.all(after, limit),
    /** Returns the durable content that was checked on the network longest ago, before a moment. */
    oldestChecked: (beforeMs: number): FileContent | undefined => oldestChecked.get(beforeMs) ?? undefined,
    /** Marks every content as not known to be kept elsewhere. Returns the files concerned. */
    undoDurable() {
      undoDurable.run();
      return undoDurableRefs.all();
    },

    /** Contents that nothing refers to. */
    orphans: (limit: number) => orphans.all(limit),
    /** Adds time that has passed to the age of orphans; other contents have no age. */
    age(ms: number): void {
      renew.run();
      age.run(Math.round(ms)); // the column holds whole numbers
    },

    /** Whether the refs differ from the rows of the dataset that they follow. */
    isOutOfStep: (dataset: string): boolean => (liveRows.get(dataset)?.live ?? 0) !== (total.get()?.count ?? 0),
    /** The objects that have, or had, rows of the dataset. */
    holders: (dataset: string): number[] => holders.all(dataset).map(({ objectNo }) => objectNo),
    clearRefs: () => void clearRefs.run(),
    /** Whether something of the space cannot be read yet, so that what looks unreferenced may not be. */
    isWaiting: (): boolean => isWaiting.get() !== null,
  };
}
