import type { Database } from "bun:sqlite";
import { StoredFileError } from "../../protocol/storage-fault.ts";

/** How much of a change is stored: all of it, a root (which has no body), or a stub (whose body is not here). */
export type ChangeKind = 0 | 1 | 2;
export const CHANGE_ROOT: ChangeKind = 0;
export const CHANGE_WHOLE: ChangeKind = 1;
export const CHANGE_STUB: ChangeKind = 2;

/** What a row costs besides the bytes, for a change that does not count. */
export const UNCOUNTED_ROW_BYTES = 512;

export interface StoredChange {
  no: number;
  id: Uint8Array;
  objectNo: number;
  lamport: number;
  writer: number;
  seq: number;
  aclPos: number;
  timeMs: number;
  datasetNo: number;
  counts: boolean;
  kind: ChangeKind;
  bytes: Uint8Array;
}

interface ChangeRow {
  no: number;
  id: Uint8Array;
  objectNo: number;
  lamport: number;
  writer: number;
  seq: number;
  acl_pos: number;
  time: number;
  datasetNo: number;
  counts: number;
  kind: number;
  bytes: Uint8Array;
}

export interface WriterRow {
  no: number;
  author: Uint8Array;
  id: Uint8Array;
  /** Highest seq stored without a gap below it. */
  seq: number;
  last: Uint8Array | null;
  /** Lamport of the change at `seq`. */
  lamport: number;
}

const WRITER_COLUMNS = "no, author, id, seq, last, lamport";
const COLUMNS = "no, id, objectNo, lamport, writer, seq, acl_pos, time, datasetNo, counts, kind, bytes";

const fromRow = (row: ChangeRow): StoredChange => ({
  no: row.no,
  id: row.id,
  objectNo: row.objectNo,
  lamport: row.lamport,
  writer: row.writer,
  seq: row.seq,
  aclPos: row.acl_pos,
  timeMs: row.time,
  datasetNo: row.datasetNo,
  counts: row.counts === 1,
  kind: row.kind as ChangeKind,
  bytes: row.bytes,
});

const orUndefined = (row: ChangeRow | null): StoredChange | undefined => (row ? fromRow(row) : undefined);

/** The log of changes and the chains of their writers. Writes happen inside the commit queue's transaction. */
export type ChangeTable = ReturnType<typeof createChangeTable>;

export function createChangeTable(db: Database) {
  const insert = db.query<
    null,
    [Uint8Array, number, number, number, number, number, number, number, number, number, Uint8Array]
  >(
    "INSERT INTO changes(id, objectNo, lamport, writer, seq, acl_pos, time, datasetNo, counts, kind, bytes) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
  );
  const byId = db.query<ChangeRow, [Uint8Array]>(`SELECT ${COLUMNS} FROM changes WHERE id = ?`);
  const noOf = db.query<{ no: number }, [Uint8Array]>("SELECT no FROM changes WHERE id = ?");
  const byNo = db.query<ChangeRow, [number]>(`SELECT ${COLUMNS} FROM changes WHERE no = ?`);
  const ofRow = db.query<{ no: number; lamport: number; id: Uint8Array }, [number, number, Uint8Array, number]>(
    `SELECT c.no, t.lamport, c.id FROM touches t JOIN changes c ON c.no = t.change
     WHERE t.row = ?1 AND t.lamport >= ?2 AND (t.lamport > ?2 OR c.id > ?3) AND c.counts = 1 AND c.datasetNo <> 0
     ORDER BY t.lamport, c.id LIMIT ?4+0`,
  );
  const ofObject = db.query<ChangeRow, [number]>(
    `SELECT ${COLUMNS} FROM changes WHERE objectNo = ? ORDER BY lamport, id`,
  );
  const newestOfObject = db.query<ChangeRow, [number]>(
    `SELECT ${COLUMNS} FROM changes WHERE objectNo = ? AND counts = 1 AND datasetNo <> 0 ORDER BY lamport DESC, id DESC LIMIT 1`,
  );
  const ofWriter = db.query<ChangeRow, [number, number, number]>(
    `SELECT ${COLUMNS} FROM changes WHERE writer = ? AND seq >= ? ORDER BY seq, id LIMIT ?`,
  );
  const atLamport = db.query<ChangeRow, [number, number]>(
    `SELECT ${COLUMNS} FROM changes WHERE objectNo = ? AND lamport = ?`,
  );
  const atSeq = db.query<ChangeRow, [number, number]>(`SELECT ${COLUMNS} FROM changes WHERE writer = ? AND seq = ?`);
  const after = db.query<ChangeRow, [number, number]>(
    `SELECT ${COLUMNS} FROM changes WHERE no > ? ORDER BY no LIMIT ?`,
  );
  const countOfWriter = db.query<{ n: number }, [number]>("SELECT count(*) AS n FROM changes WHERE writer = ?");
  const newestOfWriter = db.query<{ seq: number; id: Uint8Array; lamport: number }, [number]>(
    "SELECT seq, id, lamport FROM changes WHERE writer = ? ORDER BY seq DESC, id LIMIT 1",
  );
  const uncountedOfWriter = db.query<{ id: Uint8Array; objectNo: number }, [number, number]>(
    "SELECT id, objectNo FROM changes WHERE writer = ? AND counts = 0 ORDER BY seq DESC, id LIMIT ?",
  );
  const countUncounted = db.query<{ count: number }, [number]>(
    "SELECT count(*) AS count FROM changes WHERE writer = ? AND counts = 0",
  );
  const ofWriterAfter = db.query<ChangeRow, [number, number, number]>(
    `SELECT ${COLUMNS} FROM changes WHERE writer = ? AND no > ? ORDER BY no LIMIT ?`,
  );
  const fromAclPos = db.query<ChangeRow, [number, number, number]>(
    `SELECT ${COLUMNS} FROM changes WHERE no > ? AND acl_pos >= ? ORDER BY no LIMIT ?`,
  );
  const countedFromAclPos = db.query<{ no: number; writer: number; acl_pos: number }, [number]>(
    "SELECT no, writer, acl_pos FROM changes WHERE acl_pos >= ? AND counts = 1 AND writer <> 0 ORDER BY no",
  );
  const setPosition = db.query<null, [number, number, number, number, number, number, number]>(
    "UPDATE changes SET objectNo = ?, lamport = ?, writer = ?, seq = ?, time = ?, kind = ? WHERE no = ?",
  );
  const setId = db.query<null, [Uint8Array, number]>("UPDATE changes SET id = ? WHERE no = ?");
  const setAclPos = db.query<null, [number, number]>("UPDATE changes SET acl_pos = ? WHERE no = ?");
  const setBytes = db.query<null, [Uint8Array, number, number, number]>(
    "UPDATE changes SET bytes = ?, kind = ?, datasetNo = ? WHERE no = ?",
  );
  const wholeOf = db.query<ChangeRow, [number, number, number, number]>(
    `SELECT ${COLUMNS} FROM changes WHERE objectNo = ? AND (lamport, no) > (?, ?) AND kind = 1
     ORDER BY lamport, no LIMIT ?`,
  );
  const stubsOf = db.query<{ id: Uint8Array }, [number, number]>(
    "SELECT id FROM changes WHERE objectNo = ? AND kind = 2 ORDER BY lamport, no LIMIT ?",
  );
  const setCounts = db.query<null, [number, number]>("UPDATE changes SET counts = ? WHERE no = ?");

  const headsOf = db.query<{ no: number; id: Uint8Array; lamport: number; acl_pos: number }, [number]>(
    "SELECT c.no, c.id, c.lamport, c.acl_pos FROM heads h JOIN changes c ON c.no = h.change WHERE h.objectNo = ? ORDER BY c.id",
  );
  const addHead = db.query<null, [number, number]>("INSERT OR IGNORE INTO heads(objectNo, change) VALUES(?, ?)");
  const dropHead = db.query<null, [number, number]>("DELETE FROM heads WHERE objectNo = ? AND change = ?");

  const writerBy = db.query<WriterRow, [Uint8Array, Uint8Array]>(
    `SELECT ${WRITER_COLUMNS} FROM writers WHERE author = ? AND id = ?`,
  );
  const writerByNo = db.query<WriterRow, [number]>(`SELECT ${WRITER_COLUMNS} FROM writers WHERE no = ?`);
  const allWriters = db.query<WriterRow, []>(`SELECT ${WRITER_COLUMNS} FROM writers ORDER BY no`);
  const writersOf = db.query<WriterRow, [Uint8Array]>(
    `SELECT ${WRITER_COLUMNS} FROM writers WHERE author = ? ORDER BY no`,
  );
  const highestLamport = db.query<{ lamport: number | null }, []>(
    "SELECT max(lamport) AS lamport FROM writers WHERE counted > 0",
  );
  const uncountedBytes = db.query<{ bytes: number }, []>("SELECT bytes FROM uncounted");
  const addWriter = db.query<null, [Uint8Array, Uint8Array]>("INSERT INTO writers(author, id) VALUES(?, ?)");
  const setWriter = db.query<null, [number, Uint8Array | null, number, number, number, number]>(
    "UPDATE writers SET seq = ?, last = ?, lamport = ?, changes = changes + ?, counted = counted + ? WHERE no = ?",
  );
  const countedAnew = db.query<{ writer: number }, []>("SELECT writer FROM counted_anew");
  const clearCountedAnew = db.query<null, []>("DELETE FROM counted_anew");
  let rewrites = 0;

  return {
    /** Inserts a change and returns its local number. Its writer's row does not say of it yet: `saveWriter` does. */
    insert(change: Omit<StoredChange, "no">): number {
      return Number(
        insert.run(
          change.id,
          change.objectNo,
          change.lamport,
          change.writer,
          change.seq,
          change.aclPos,
          change.timeMs,
          change.datasetNo,
          change.counts ? 1 : 0,
          change.kind,
          change.bytes,
        ).lastInsertRowid,
      );
    },
    byId: (id: Uint8Array) => orUndefined(byId.get(id)),
    /** The local number of a change. */
    noOf: (id: Uint8Array): number | undefined => noOf.get(id)?.no,
    byNo: (no: number) => orUndefined(byNo.get(no)),
    /** A page of the counted changes that touch a row and whose bodies are folded, by number, in the order of the fold, after a position in it. */
    ofRowAfter: (row: number, lamport: number, id: Uint8Array, limit: number) => ofRow.all(row, lamport, id, limit),
    ofObject: (objectNo: number) => ofObject.all(objectNo).map(fromRow),
    /** Returns the newest change of an object whose body is folded. */
    newestOfObject: (objectNo: number) => orUndefined(newestOfObject.get(objectNo)),
    /** A page of a writer's chain from a seq on; both changes where one seq was used twice. */
    ofWriter: (writer: number, fromSeq: number, limit: number) => ofWriter.all(writer, fromSeq, limit).map(fromRow),
    /** Returns the changes of an object at one lamport; they are few, and differ by their ids. */
    atLamport: (objectNo: number, lamport: number) => atLamport.all(objectNo, lamport).map(fromRow),
    atSeq: (writer: number, seq: number) => atSeq.all(writer, seq).map(fromRow),
    /** In the order of arrival. */
    after: (no: number, limit: number) => after.all(no, limit).map(fromRow),
    /** A page of a writer's changes in the order of arrival. */
    ofWriterAfter: (writer: number, afterNo: number, limit: number) =>
      ofWriterAfter.all(writer, afterNo, limit).map(fromRow),
    /** A writer's change with the highest seq. */
    newestOfWriter: (writer: number) => newestOfWriter.get(writer) ?? undefined,
    /** How many changes a writer has here: more than its highest seq when its chain forks. */
    countOfWriter: (writer: number): number => countOfWriter.get(writer)!.n,
    /** Changes at an ACL position or a later one, in the order of arrival. */
    fromAclPos: (aclPos: number, afterNo: number, limit: number) => fromAclPos.all(afterNo, aclPos, limit).map(fromRow),
    /** Returns the positions of the changes that count, at an ACL position or a later one, in the order of arrival. */
    countedFromAclPos: (aclPos: number) => countedFromAclPos.iterate(aclPos),
    /** Sets the columns of a change to what its bytes say, where they were stored differently. */
    setPosition(
      no: number,
      said: Pick<StoredChange, "objectNo" | "lamport" | "writer" | "seq" | "timeMs" | "kind">,
    ): void {
      rewrites++;
      setPosition.run(said.objectNo, said.lamport, said.writer, said.seq, said.timeMs, said.kind, no);
    },
    /** Sets the id of a change to the hash of its bytes, where it was stored as another. */
    setId(no: number, id: Uint8Array): void {
      rewrites++;
      setId.run(id, no);
    },
    setAclPos: (no: number, aclPos: number) => void setAclPos.run(aclPos, no),
    /** Returns the changes of a writer that do not count, newest first. */
    uncountedOfWriter: (writer: number, limit: number) => uncountedOfWriter.all(writer, limit),
    countUncounted: (writer: number): number => countUncounted.get(writer)!.count,
    /** Replaces the bytes of a change, which becomes whole or a stub; `datasetNo` is 0 until its body is folded. */
    setBytes(no: number, bytes: Uint8Array, kind: ChangeKind, datasetNo: number): void {
      rewrites++;
      setBytes.run(bytes, kind, datasetNo, no);
    },
    /** A number that grows with each of these calls, and with each new verdict; a rollback does not take it back. */
    rewrites: (): number => rewrites,
    /** A page of an object's changes that are kept with their bodies, after a position in the order (lamport, no). */
    wholeOf: (objectNo: number, after: { lamport: number; no: number }, limit: number) =>
      wholeOf.all(objectNo, after.lamport, after.no, limit).map(fromRow),
    /** Ids of an object's changes that are kept without their bodies, oldest first. */
    stubsOf: (objectNo: number, limit: number): Uint8Array[] => stubsOf.all(objectNo, limit).map(({ id }) => id),
    setCounts(no: number, counts: boolean): void {
      rewrites++;
      setCounts.run(counts ? 1 : 0, no);
    },
    /** Returns, once, the writers of whose changes none counted until now and one does now. */
    takeCountedAnew(): number[] {
      const writers = countedAnew.all().map(({ writer }) => writer);
      if (writers.length > 0) clearCountedAnew.run();
      return writers;
    },

    heads: (objectNo: number) =>
      headsOf.all(objectNo).map((row) => ({ no: row.no, id: row.id, lamport: row.lamport, aclPos: row.acl_pos })),
    addHead: (objectNo: number, change: number) => void addHead.run(objectNo, change),
    dropHead: (objectNo: number, change: number) => void dropHead.run(objectNo, change),

    writer: (author: Uint8Array, id: Uint8Array): WriterRow | undefined => writerBy.get(author, id) ?? undefined,
    findWriterByNo: (no: number): WriterRow | undefined => writerByNo.get(no) ?? undefined,
    /** The writer that a stored change names. */
    writerByNo(no: number): WriterRow {
      const row = writerByNo.get(no);
      if (!row) throw new StoredFileError("damaged", "the writer of a stored change is gone");
      return row;
    },
    /** The writers of one account. */
    writersOf: (author: Uint8Array): WriterRow[] => writersOf.all(author),
    /** Returns the highest lamport of the changes of all writers whose changes count. */
    highestLamport: (): number => highestLamport.get()?.lamport ?? 0,
    /** Returns the bytes of the changes that do not count, including what their rows cost besides. */
    uncountedBytes: (): number => uncountedBytes.get()!.bytes,
    writers: () => allWriters.all(),
    addWriter: (author: Uint8Array, id: Uint8Array): WriterRow => {
      const no = Number(addWriter.run(author, id).lastInsertRowid);
      return { no, author, id, seq: 0, last: null, lamport: 0 };
    },
    /** Writes where a writer's chain ends, and that so many changes more are stored of it, of which so many count. */
    saveWriter: ({ seq, last, lamport, no }: WriterRow, more: { changes: number; counted: number }) =>
      void setWriter.run(seq, last, lamport, more.changes, more.counted, no),
  };
}
