import type { Database } from "bun:sqlite";
import { bytesToHex, hexToBytes } from "../../base/bytes.ts";
import { checksumOf, checksumWith } from "../../base/checksum.ts";
import type { Refusal, RefusalCode } from "../../protocol/refusals.ts";

/** What a parked change waits for. */
export type WaitKind = "change" | "acl" | "key" | "definition" | "version";

export interface ParkedChange {
  id: Uint8Array;
  bytes: Uint8Array;
  waitKind: WaitKind;
  waitFor: Uint8Array;
  author: Uint8Array;
  /** The object it belongs to; undefined while its format is not known here. */
  object?: Uint8Array | undefined;
  receivedMs: number;
  rounds: number;
}

interface RawParked {
  id: Uint8Array;
  bytes: Uint8Array;
  wait_kind: string;
  wait_for: Uint8Array;
  author: Uint8Array;
  received_ms: number;
  rounds: number;
  object: Uint8Array | null;
}

const toParked = (row: RawParked): ParkedChange => ({
  id: row.id,
  bytes: row.bytes,
  waitKind: row.wait_kind as WaitKind,
  waitFor: row.wait_for,
  author: row.author,
  receivedMs: row.received_ms,
  rounds: row.rounds,
  object: row.object ?? undefined,
});

/** What a row costs besides its bytes, so that the number of small rows is bounded too. */
const ROW_BYTES = 256;

/**
 * How much is parked, kept in step by triggers: counting anew for every incoming change would make a flood quadratic. The table
 * belongs to the connection; a rollback takes the figures back together with the rows that they count.
 */
const USAGE = `
  CREATE TEMP TABLE parked_usage(author BLOB PRIMARY KEY, count INTEGER NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TEMP TABLE quarantine_usage(count INTEGER NOT NULL, bytes INTEGER NOT NULL);
  INSERT INTO parked_usage SELECT author, count(*), sum(length(bytes) + ${ROW_BYTES}) FROM main.parked GROUP BY author;
  INSERT INTO quarantine_usage SELECT count(*), coalesce(sum(length(bytes) + ${ROW_BYTES}), 0) FROM main.quarantine;
  CREATE TEMP TRIGGER parked_added AFTER INSERT ON main.parked BEGIN
    INSERT INTO parked_usage VALUES(NEW.author, 1, length(NEW.bytes) + ${ROW_BYTES})
      ON CONFLICT(author) DO UPDATE SET count = count + 1, bytes = bytes + excluded.bytes;
  END;
  CREATE TEMP TRIGGER parked_dropped AFTER DELETE ON main.parked BEGIN
    UPDATE parked_usage SET count = count - 1, bytes = bytes - length(OLD.bytes) - ${ROW_BYTES} WHERE author = OLD.author;
    DELETE FROM parked_usage WHERE author = OLD.author AND count = 0;
  END;
  CREATE TEMP TRIGGER quarantine_added AFTER INSERT ON main.quarantine BEGIN
    UPDATE quarantine_usage SET count = count + 1, bytes = bytes + length(NEW.bytes) + ${ROW_BYTES};
  END;
  CREATE TEMP TRIGGER quarantine_dropped AFTER DELETE ON main.quarantine BEGIN
    UPDATE quarantine_usage SET count = count - 1, bytes = bytes - length(OLD.bytes) - ${ROW_BYTES};
  END;`;

/**
 * A change whose author has no right to it: nobody misses what it waits for. For two kinds of wait the right cannot be judged
 * yet.
 */
const UNPAID = "(author = zeroblob(32) AND wait_kind NOT IN ('acl', 'version'))";
/**
 * One round more has passed for rows of a table, up to the patience that is given. More than that were never counted: the disk
 * says so, and the count begins anew.
 */
export const oneRoundMore = (table: "parked" | "pending_bodies"): string =>
  `UPDATE ${table} SET rounds = CASE WHEN rounds BETWEEN 0 AND ?1 THEN rounds + 1 ELSE 0 END WHERE rounds < ?1 OR rounds > ?1`;
/** A change that no longer counts as waiting, or never did: it has waited so long that evidently nobody has what it waits for. */
const IN_VAIN = `(rounds >= ? OR ${UNPAID})`;

const COLUMNS = "id, bytes, wait_kind, wait_for, author, received_ms, rounds, object";

/** How many of these are remembered for as long as the space is open. */
const PASSED_OVER_MAX = 2048;

interface QuarantineRow {
  id: Uint8Array;
  code: RefusalCode;
  facts: string;
  received_ms: number;
  /** A checksum of the rest; where it is wrong, the change is not quarantined. */
  sum: number;
}

const refusalOf = ({ code, facts }: QuarantineRow): Refusal => ({ code, facts: JSON.parse(facts) as Refusal["facts"] });

const sumOf = ({ id, code, facts, received_ms }: Omit<QuarantineRow, "sum">): number =>
  checksumWith(checksumOf(id), checksumOf(code), checksumOf(facts), received_ms);
const isSound = (row: QuarantineRow): boolean => sumOf(row) === row.sum;

/** Holds changes that cannot be judged yet, and changes that never will count; both survive a restart. */
export type ParkedTable = ReturnType<typeof createParkedTable>;

export function createParkedTable(db: Database) {
  /** Ids (hex) of changes for which quarantine had no room, the latest last. */
  const passedOver = new Set<string>();
  db.exec(USAGE);
  const put = db.query<null, [Uint8Array, string, Uint8Array, Uint8Array, number, Uint8Array | null, Uint8Array]>(
    `INSERT INTO parked(id, wait_kind, wait_for, author, received_ms, object, bytes) VALUES(?,?,?,?,?,?,?)
     ON CONFLICT(id) DO UPDATE SET wait_kind = excluded.wait_kind, wait_for = excluded.wait_for,
       object = coalesce(excluded.object, object)`,
  );
  const get = db.query<RawParked, [Uint8Array]>(`SELECT ${COLUMNS} FROM parked WHERE id = ?`);
  const authorsWaitingFor = db.query<{ author: Uint8Array }, [string, Uint8Array]>(
    "SELECT DISTINCT author FROM parked WHERE wait_kind = ? AND wait_for = ?",
  );
  const anyWaitingFor = db.query<{ found: number }, [string, Uint8Array]>(
    "SELECT 1 AS found FROM parked WHERE wait_kind = ? AND wait_for = ? LIMIT 1",
  );
  const voucherFor = db.query<{ author: Uint8Array }, [Uint8Array]>(
    "SELECT author FROM parked WHERE wait_kind = 'change' AND wait_for = ? AND author <> zeroblob(32) LIMIT 1",
  );
  const nextWaitingFor = db.query<RawParked, [string, Uint8Array, Uint8Array]>(
    `SELECT ${COLUMNS} FROM parked WHERE wait_kind = ? AND wait_for = ? AND id > ? ORDER BY id LIMIT 1`,
  );
  const nextOfKind = db.query<RawParked, [string, Uint8Array, Uint8Array]>(
    `SELECT ${COLUMNS} FROM parked WHERE wait_kind = ? AND (wait_for, id) > (?, ?) ORDER BY wait_for, id LIMIT 1`,
  );
  const ofKind = db.query<RawParked, [string]>(`SELECT ${COLUMNS} FROM parked WHERE wait_kind = ?`);
  const drop = db.query<null, [Uint8Array]>("DELETE FROM parked WHERE id = ?");
  const usage = db.query<{ count: number | null; bytes: number | null }, []>(
    "SELECT sum(count) AS count, sum(bytes) AS bytes FROM parked_usage",
  );
  const usageOf = db.query<{ count: number; bytes: number }, [Uint8Array]>(
    "SELECT count, bytes FROM parked_usage WHERE author = ?",
  );
  const waitingObjects = db.query<{ object: Uint8Array }, [number, number]>(
    `SELECT DISTINCT object FROM parked WHERE object IS NOT NULL AND NOT (${IN_VAIN}) LIMIT ?`,
  );
  const waitingCount = db.query<{ count: number }, [number]>(
    `SELECT count(*) AS count FROM parked WHERE NOT (${IN_VAIN})`,
  );
  const orphans = db.query<{ id: Uint8Array; wait_kind: WaitKind; wait_for: Uint8Array }, [number, number]>(
    `SELECT id, wait_kind, wait_for FROM parked WHERE ${IN_VAIN} ORDER BY received_ms DESC LIMIT ?`,
  );
  const ids = db.query<{ id: Uint8Array }, [number]>("SELECT id FROM parked LIMIT ?");
  const quarantinedIds = db.query<{ id: Uint8Array }, [number]>(
    "SELECT id FROM quarantine ORDER BY received_ms DESC LIMIT ?",
  );
  const age = db.query<null, [number]>(oneRoundMore("parked"));
  const wantedChanges = db.query<{ wait_for: Uint8Array }, [Uint8Array, number]>(
    `SELECT DISTINCT wait_for FROM parked WHERE wait_kind = 'change' AND wait_for > ? AND NOT ${UNPAID}
     ORDER BY wait_for LIMIT ?`,
  );
  const wanted = db.query<{ wait_for: Uint8Array }, [string, number]>(
    "SELECT DISTINCT wait_for FROM parked WHERE wait_kind = ? LIMIT ?",
  );
  const quarantine = db.query<null, [Uint8Array, RefusalCode, string, Uint8Array, number, number]>(
    "INSERT OR REPLACE INTO quarantine(id, code, facts, bytes, received_ms, sum) VALUES(?,?,?,?,?,?)",
  );
  const quarantined = db.query<QuarantineRow, [Uint8Array]>(
    "SELECT id, code, facts, received_ms, sum FROM quarantine WHERE id = ?",
  );
  const quarantineList = db.query<QuarantineRow, [number]>(
    "SELECT id, code, facts, received_ms, sum FROM quarantine ORDER BY received_ms DESC LIMIT ?",
  );
  const pageOf = db.query<RawParked & { no: number }, [number, number]>(
    `SELECT rowid AS no, ${COLUMNS} FROM parked WHERE rowid > ? ORDER BY rowid LIMIT ?`,
  );
  const quarantinePage = db.query<QuarantineRow & { no: number; bytes: Uint8Array }, [number, number]>(
    "SELECT rowid AS no, id, code, facts, received_ms, bytes, sum FROM quarantine WHERE rowid > ? ORDER BY rowid LIMIT ?",
  );
  const dropQuarantined = db.query<null, [number]>("DELETE FROM quarantine WHERE rowid = ?");
  const quarantineUsage = db.query<{ count: number; bytes: number }, []>("SELECT count, bytes FROM quarantine_usage");

  return {
    put: ({ id, waitKind, waitFor, author, receivedMs, object, bytes }: Omit<ParkedChange, "rounds">) =>
      void put.run(id, waitKind, waitFor, author, receivedMs, object ?? null, bytes),
    get(id: Uint8Array): ParkedChange | undefined {
      const row = get.get(id);
      return row ? toParked(row) : undefined;
    },
    /** Returns the authors of the changes that wait for this; zeros stand for all authors who have no right to theirs. */
    authorsWaitingFor: (kind: WaitKind, what: Uint8Array): Uint8Array[] =>
      authorsWaitingFor.all(kind, what).map(({ author }) => author),
    anyWaitingFor: (kind: WaitKind, what: Uint8Array): boolean => anyWaitingFor.get(kind, what) !== null,
    /** Returns an author who has the right to a change that waits for this one; changes under zeros have no such author. */
    voucherFor: (id: Uint8Array): Uint8Array | undefined => voucherFor.get(id)?.author,
    /** Returns the first waiting change after an id, by id. */
    nextWaitingFor(kind: WaitKind, what: Uint8Array, afterId: Uint8Array): ParkedChange | undefined {
      const row = nextWaitingFor.get(kind, what, afterId);
      return row ? toParked(row) : undefined;
    },
    /** Returns the first change after a position in the order of what changes wait for and their ids. */
    nextOfKind(kind: WaitKind, afterFor: Uint8Array, afterId: Uint8Array): ParkedChange | undefined {
      const row = nextOfKind.get(kind, afterFor, afterId);
      return row ? toParked(row) : undefined;
    },
    ofKind: (kind: WaitKind): ParkedChange[] => ofKind.all(kind).map(toParked),
    drop: (id: Uint8Array) => void drop.run(id),
    /** Counts everything that waits; the bytes include what a row costs besides. */
    usage(): { count: number; bytes: number } {
      const row = usage.get();
      return { count: row?.count ?? 0, bytes: row?.bytes ?? 0 };
    },
    usageOf: (author: Uint8Array): { count: number; bytes: number } => usageOf.get(author) ?? { count: 0, bytes: 0 },
    /**
     * Notes that a sync round passed without bringing what the changes wait for. Rows that have waited through `patience` rounds
     * are not written again.
     */
    age: (patience: number) => void age.run(patience),
    /** Returns ids of objects that have waiting changes, without changes that have waited in vain through `patience` rounds. */
    waitingObjects: (patience: number, limit: number): Uint8Array[] =>
      waitingObjects.all(patience, limit).map(({ object }) => object),
    waitingCount: (patience: number): number => waitingCount.get(patience)?.count ?? 0,
    /** Returns changes that have waited in vain. They are still taken up if what they wait for comes. */
    orphans: (patience: number, limit: number) =>
      orphans.all(patience, limit).map((row) => ({ id: row.id, waitKind: row.wait_kind, waitFor: row.wait_for })),
    ids: (limit: number): Uint8Array[] => ids.all(limit).map((row) => row.id),
    /** Returns the ids of the latest quarantined changes, with those for which there was no room first. */
    quarantinedIds(limit: number): Uint8Array[] {
      const latest = [...passedOver].slice(-limit).map((name) => hexToBytes(name)!);
      return [...latest, ...quarantinedIds.all(limit - latest.length).map((row) => row.id)];
    },
    /** Remembers that a change came for which quarantine has no room, so that it need not come again. */
    passOver(id: Uint8Array): void {
      const name = bytesToHex(id);
      passedOver.delete(name);
      passedOver.add(name);
      if (passedOver.size > PASSED_OVER_MAX) passedOver.delete(passedOver.keys().next().value!);
    },
    /** Returns ids of changes for which others wait, in order, after a given one. */
    wantedChanges: (after: Uint8Array, limit: number): Uint8Array[] =>
      wantedChanges.all(after, limit).map((row) => row.wait_for),
    /** Returns what changes wait for, each once. */
    wanted: (kind: WaitKind, limit: number): Uint8Array[] => wanted.all(kind, limit).map((row) => row.wait_for),
    quarantine(id: Uint8Array, { code, facts }: Refusal, bytes: Uint8Array, receivedMs: number): void {
      const row = { id, code, facts: JSON.stringify(facts), received_ms: receivedMs };
      quarantine.run(id, code, row.facts, bytes, receivedMs, sumOf(row));
    },
    /** Returns why a change is quarantined; undefined for one that is not. */
    whyQuarantined(id: Uint8Array): Refusal | undefined {
      const row = quarantined.get(id);
      return row && isSound(row) ? refusalOf(row) : undefined;
    },
    quarantineList: (limit: number) =>
      quarantineList
        .all(limit)
        .filter(isSound)
        .map((row) => ({ id: row.id, refusal: refusalOf(row), receivedMs: row.received_ms })),
    /** A page of what waits, by number, after one. */
    after: (no: number, limit: number): (ParkedChange & { no: number })[] =>
      pageOf.all(no, limit).map((row) => ({ ...toParked(row), no: row.no })),
    /** A page of what is quarantined, by number, after one; and whether each is what was stored, but for its bytes. */
    quarantinedAfter: (no: number, limit: number) =>
      quarantinePage.all(no, limit).map((row) => ({ ...row, isSound: isSound(row) })),
    dropQuarantined: (no: number) => void dropQuarantined.run(no),
    quarantineUsage: (): { count: number; bytes: number } => quarantineUsage.get()!,
  };
}
