import type { Database } from "bun:sqlite";

/** What a parked change waits for. */
export type WaitKind = "change" | "acl" | "key" | "definition" | "version";

export interface ParkedChange {
  id: Uint8Array;
  bytes: Uint8Array;
  waitKind: WaitKind;
  waitFor: Uint8Array;
  author: Uint8Array;
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
}

const toParked = (row: RawParked): ParkedChange => ({
  id: row.id,
  bytes: row.bytes,
  waitKind: row.wait_kind as WaitKind,
  waitFor: row.wait_for,
  author: row.author,
  receivedMs: row.received_ms,
  rounds: row.rounds,
});

const COLUMNS = "id, bytes, wait_kind, wait_for, author, received_ms, rounds";

/** Changes that cannot be judged yet, and those that never will count: both survive a restart. */
export type ParkedTable = ReturnType<typeof createParkedTable>;

export function createParkedTable(db: Database) {
  const put = db.query<null, [Uint8Array, Uint8Array, string, Uint8Array, Uint8Array, number]>(
    `INSERT INTO parked(id, bytes, wait_kind, wait_for, author, received_ms) VALUES(?,?,?,?,?,?)
     ON CONFLICT(id) DO UPDATE SET wait_kind = excluded.wait_kind, wait_for = excluded.wait_for`,
  );
  const get = db.query<RawParked, [Uint8Array]>(`SELECT ${COLUMNS} FROM parked WHERE id = ?`);
  const waitingFor = db.query<RawParked, [string, Uint8Array]>(
    `SELECT ${COLUMNS} FROM parked WHERE wait_kind = ? AND wait_for = ?`,
  );
  const ofKind = db.query<RawParked, [string]>(`SELECT ${COLUMNS} FROM parked WHERE wait_kind = ?`);
  const drop = db.query<null, [Uint8Array]>("DELETE FROM parked WHERE id = ?");
  const usage = db.query<{ count: number; bytes: number | null }, []>(
    "SELECT count(*) AS count, sum(length(bytes)) AS bytes FROM parked",
  );
  const usageOf = db.query<{ count: number; bytes: number | null }, [Uint8Array]>(
    "SELECT count(*) AS count, sum(length(bytes)) AS bytes FROM parked WHERE author = ?",
  );
  const waiting = db.query<{ bytes: Uint8Array }, [number, number]>(
    "SELECT bytes FROM parked WHERE NOT (wait_kind = 'change' AND rounds >= ?) ORDER BY received_ms LIMIT ?",
  );
  const waitingCount = db.query<{ count: number }, [number]>(
    "SELECT count(*) AS count FROM parked WHERE NOT (wait_kind = 'change' AND rounds >= ?)",
  );
  const orphans = db.query<{ id: Uint8Array; wait_for: Uint8Array }, [number, number]>(
    "SELECT id, wait_for FROM parked WHERE wait_kind = 'change' AND rounds >= ? ORDER BY received_ms DESC LIMIT ?",
  );
  const ids = db.query<{ id: Uint8Array }, [number]>("SELECT id FROM parked LIMIT ?");
  const quarantinedIds = db.query<{ id: Uint8Array }, [number]>(
    "SELECT id FROM quarantine ORDER BY received_ms DESC LIMIT ?",
  );
  const ageAll = db.query<null, []>("UPDATE parked SET rounds = rounds + 1");
  const wanted = db.query<{ wait_kind: string; wait_for: Uint8Array }, [number]>(
    "SELECT DISTINCT wait_kind, wait_for FROM parked LIMIT ?",
  );
  const awaitedRecords = db.query<{ wait_for: Uint8Array }, [number]>(
    "SELECT DISTINCT wait_for FROM parked WHERE wait_kind = 'acl' LIMIT ?",
  );
  const quarantine = db.query<null, [Uint8Array, string, Uint8Array, number]>(
    "INSERT OR IGNORE INTO quarantine(id, reason, bytes, received_ms) VALUES(?,?,?,?)",
  );
  const quarantined = db.query<{ id: Uint8Array; reason: string }, [Uint8Array]>(
    "SELECT id, reason FROM quarantine WHERE id = ?",
  );
  const quarantineList = db.query<{ id: Uint8Array; reason: string; received_ms: number }, [number]>(
    "SELECT id, reason, received_ms FROM quarantine ORDER BY received_ms DESC LIMIT ?",
  );
  const quarantineUsage = db.query<{ count: number; bytes: number | null }, []>(
    "SELECT count(*) AS count, sum(length(bytes)) AS bytes FROM quarantine",
  );

  return {
    put: (change: Omit<ParkedChange, "rounds">) =>
      void put.run(change.id, change.bytes, change.waitKind, change.waitFor, change.author, change.receivedMs),
    get(id: Uint8Array): ParkedChange | undefined {
      const row = get.get(id);
      return row ? toParked(row) : undefined;
    },
    waitingFor: (kind: WaitKind, what: Uint8Array): ParkedChange[] => waitingFor.all(kind, what).map(toParked),
    ofKind: (kind: WaitKind): ParkedChange[] => ofKind.all(kind).map(toParked),
    drop: (id: Uint8Array) => void drop.run(id),
    usage(): { count: number; bytes: number } {
      const row = usage.get()!;
      return { count: row.count, bytes: row.bytes ?? 0 };
    },
    usageOf(author: Uint8Array): { count: number; bytes: number } {
      const row = usageOf.get(author)!;
      return { count: row.count, bytes: row.bytes ?? 0 };
    },
    /** One sync round passed without what they wait for. */
    ageAll: () => void ageAll.run(),
    /** Bytes of what waits, oldest first, but for what has waited for another change through `patience` rounds. */
    waiting: (patience: number, limit: number): Uint8Array[] => waiting.all(patience, limit).map((row) => row.bytes),
    waitingCount: (patience: number): number => waitingCount.get(patience)?.count ?? 0,
    /** What has waited in vain for another change. It is still taken up should that come. */
    orphans: (patience: number, limit: number) =>
      orphans.all(patience, limit).map((row) => ({ id: row.id, waitFor: row.wait_for })),
    ids: (limit: number): Uint8Array[] => ids.all(limit).map((row) => row.id),
    quarantinedIds: (limit: number): Uint8Array[] => quarantinedIds.all(limit).map((row) => row.id),
    wanted: (limit: number) =>
      wanted.all(limit).map((row) => ({ kind: row.wait_kind as WaitKind, what: row.wait_for })),
    /** Ids of records of rights that changes wait for. */
    awaitedRecords: (limit: number): Uint8Array[] => awaitedRecords.all(limit).map((row) => row.wait_for),
    quarantine: (id: Uint8Array, reason: string, bytes: Uint8Array, receivedMs: number) =>
      void quarantine.run(id, reason, bytes, receivedMs),
    quarantineReason: (id: Uint8Array): string | undefined => quarantined.get(id)?.reason,
    quarantineList: (limit: number) =>
      quarantineList.all(limit).map((row) => ({ id: row.id, reason: row.reason, receivedMs: row.received_ms })),
    quarantineUsage(): { count: number; bytes: number } {
      const row = quarantineUsage.get()!;
      return { count: row.count, bytes: row.bytes ?? 0 };
    },
  };
}
