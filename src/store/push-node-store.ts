import { checksumOf, checksumWith } from "../base/checksum.ts";
import { createWaitingWrites } from "./commit/waiting-writes.ts";
import { type Migration, namingFile, openDatabase } from "./database/database.ts";
import { type KeptRepair, keepThrice, mendSmall } from "./database/kept-thrice.ts";
import type { OwnDatabase } from "./database/own-database.ts";

/** What nobody sends again before long: topics are, by devices of their accounts, and a delivery is soon over. */
const KEPT = ["meta", "devices"].map((table) => ({ table }));

const sumOf = (id: string, row: string): number => checksumWith(checksumOf(id), checksumOf(row));

/** What a push node keeps: tokens, topics and deliveries that are under way. No column holds a name or content. */
const MIGRATIONS: readonly Migration[] = [
  (db) => {
    db.exec(`
      CREATE TABLE meta(key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
      CREATE TABLE devices(
        account TEXT NOT NULL, device TEXT NOT NULL, token TEXT NOT NULL UNIQUE, row TEXT NOT NULL,
        PRIMARY KEY(account, device)) WITHOUT ROWID;
      CREATE TABLE topics(
        space_key TEXT NOT NULL, topic TEXT NOT NULL, account TEXT NOT NULL,
        PRIMARY KEY(space_key, topic, account)) WITHOUT ROWID;
      CREATE INDEX topics_by_account ON topics(account, space_key, topic);
      -- Challenges and messages that were used up, until nobody would take them anyway.
      CREATE TABLE spent(name TEXT PRIMARY KEY, until_ms INTEGER NOT NULL) WITHOUT ROWID;
      CREATE INDEX spent_by_time ON spent(until_ms);
      -- due_ms moves ahead while somebody works on a row: a crash hands it out again after the lease.
      CREATE TABLE deliveries(id TEXT PRIMARY KEY, due_ms INTEGER NOT NULL, row TEXT NOT NULL) WITHOUT ROWID;
      CREATE INDEX deliveries_by_due ON deliveries(due_ms);
    `);
  },
  (db) => {
    // sum: a checksum of id and row.
    db.exec("ALTER TABLE deliveries ADD COLUMN sum INTEGER NOT NULL DEFAULT 0");
    const setSum = db.query<null, [number, string]>("UPDATE deliveries SET sum = ? WHERE id = ?");
    for (const { id, row } of db.query<{ id: string; row: string }, []>("SELECT id, row FROM deliveries").all())
      setSum.run(sumOf(id, row), id);
    for (const kept of KEPT) keepThrice(db, kept);
  },
];

interface PushNodeStoreOptions {
  /** Told of tables that the disk changed, as they are set right when the store is opened. */
  onRepair?(repairs: readonly KeptRepair[]): void;
  /** Told how many deliveries the disk changed: nobody can send them. */
  onLost?(count: number): void;
  /** Something could not be set right. */
  onFault?(error: unknown): void;
}

/** What follows from leases of a process that is gone is undone: this one alone uses the file. */
function openSound(path: string, { onRepair }: PushNodeStoreOptions): OwnDatabase {
  const db = openDatabase(path, { migrations: MIGRATIONS, durability: "full" });
  try {
    mendSmall(db, KEPT, onRepair);
    db.exec("UPDATE deliveries SET due_ms = coalesce(json_extract(row, '$.dueMs'), 0) WHERE json_valid(row)");
    return db;
  } catch (error) {
    db.close();
    throw namingFile(path, error);
  }
}

/**
 * Rows are JSON texts; what is looked up by stands beside them. Who asks for a write waits for it, off the loop while another
 * program has the file locked. Throws as `openDatabase` does, also where the file is locked.
 */
export function openPushNodeStore(path: string, options: PushNodeStoreOptions = {}) {
  const db = openSound(path, options);
  const { write, writeInTime, close } = createWaitingWrites(db, { whose: "the push node's" });
  const onFault = (error: unknown): void => options.onFault?.(error);
  const mend = () => mendSmall(db, KEPT, options.onRepair);
  db.onMistyped(() => queueMicrotask(() => void writeInTime(mend).catch(onFault)));
  const meta = db.query<{ value: Uint8Array }, [string]>("SELECT value FROM meta WHERE key = ?");
  const putMeta = db.query<null, [string, Uint8Array]>("INSERT OR IGNORE INTO meta(key, value) VALUES(?, ?)");
  const dropToken = db.query<null, [string]>("DELETE FROM devices WHERE token = ?");
  const putDevice = db.query<null, [string, string, string, string]>(
    "INSERT INTO devices(account, device, token, row) VALUES(?, ?, ?, ?) ON CONFLICT(account, device) DO UPDATE SET token = excluded.token, row = excluded.row",
  );
  const dropDevice = db.query<null, [string, string]>("DELETE FROM devices WHERE account = ? AND device = ?");
  const device = db.query<{ row: string }, [string, string]>(
    "SELECT row FROM devices WHERE account = ? AND device = ?",
  );
  const devices = db.query<{ row: string }, [string]>("SELECT row FROM devices WHERE account = ? ORDER BY device");
  const addTopic = db.query<null, [string, string, string]>(
    "INSERT OR IGNORE INTO topics(space_key, topic, account) VALUES(?, ?, ?)",
  );
  const dropTopic = db.query<null, [string, string, string]>(
    "DELETE FROM topics WHERE space_key = ? AND topic = ? AND account = ?",
  );
  const countTopics = db.query<{ count: number }, [string]>("SELECT count(*) AS count FROM topics WHERE account = ?");
  const topicsOf = db.query<{ spaceKey: string; topic: string }, [string, string, string, number]>(
    "SELECT space_key AS spaceKey, topic FROM topics WHERE account = ? AND (space_key, topic) > (?, ?) ORDER BY space_key, topic LIMIT ?",
  );
  const subscribers = db.query<{ account: string }, [string, string]>(
    "SELECT account FROM topics WHERE space_key = ? AND topic = ?",
  );
  const spend = db.query<null, [string, number]>("INSERT OR IGNORE INTO spent(name, until_ms) VALUES(?, ?)");
  const forget = db.query<null, [number]>("DELETE FROM spent WHERE until_ms < ?");
  const addDelivery = db.query<null, [string, number, string, number]>(
    "INSERT OR IGNORE INTO deliveries(id, due_ms, row, sum) VALUES(?, ?, ?, ?)",
  );
  const due = db.query<{ id: string; row: string; sum: number }, [number, number]>(
    "SELECT id, row, sum FROM deliveries WHERE due_ms <= ? ORDER BY due_ms LIMIT ?",
  );
  const moveDelivery = db.query<null, [number, string, number, string]>(
    "UPDATE deliveries SET due_ms = ?, row = ?, sum = ? WHERE id = ?",
  );
  const leaseDelivery = db.query<null, [number, string]>("UPDATE deliveries SET due_ms = ? WHERE id = ?");
  const dropDelivery = db.query<null, [string]>("DELETE FROM deliveries WHERE id = ?");
  const nextDue = db.query<{ due: number | null }, []>("SELECT min(due_ms) AS due FROM deliveries");
  const countDeliveries = db.query<{ count: number }, []>("SELECT count(*) AS count FROM deliveries");

  return {
    /** Returns the value under a key; stores and returns the given value when there was none. */
    metaOr: (key: string, value: Uint8Array): Promise<Uint8Array> =>
      write(() => {
        putMeta.run(key, value);
        return meta.get(key)!.value;
      }),
    putDevice: (account: string, name: string, token: string, row: string): Promise<unknown> =>
      write(() => {
        dropToken.run(token);
        putDevice.run(account, name, token, row);
      }),
    dropDevice: (account: string, name: string): Promise<unknown> => write(() => dropDevice.run(account, name)),
    device: (account: string, name: string): string | undefined => device.get(account, name)?.row,
    devices: (account: string): string[] => devices.all(account).map(({ row }) => row),
    addTopics: (account: string, spaceKey: string, topics: readonly string[]): Promise<unknown> =>
      write(() => {
        for (const topic of topics) addTopic.run(spaceKey, topic, account);
      }),
    dropTopics: (account: string, spaceKey: string, topics: readonly string[]): Promise<unknown> =>
      write(() => {
        for (const topic of topics) dropTopic.run(spaceKey, topic, account);
      }),
    topicCount: (account: string): number => countTopics.get(account)!.count,
    topicsOf: (account: string, spaceKey: string, topic: string, limit: number) =>
      topicsOf.all(account, spaceKey, topic, limit),
    subscribers: (spaceKey: string, topic: string): string[] =>
      subscribers.all(spaceKey, topic).map(({ account }) => account),
    spend: (name: string, untilMs: number): Promise<boolean> => write(() => spend.run(name, untilMs).changes > 0),
    forgetSpent: (beforeMs: number): Promise<unknown> => write(() => forget.run(beforeMs)),
    /** Resolves to false, and does nothing, when the name was used before. */
    accept: (
      name: string,
      untilMs: number,
      deliveries: readonly { id: string; dueMs: number; row: string }[],
    ): Promise<boolean> =>
      write(() => {
        if (spend.run(name, untilMs).changes === 0) return false;
        for (const { id, dueMs, row } of deliveries) addDelivery.run(id, dueMs, row, sumOf(id, row));
        return true;
      }),
    /** Resolves to rows that are due, and puts them off to the end of the lease. */
    takeDue: (nowMs: number, limit: number, leaseEndMs: number): Promise<string[]> =>
      write(() => {
        const taken: string[] = [];
        let lost = 0;
        for (const { id, row, sum } of due.all(nowMs, limit)) {
          if (sumOf(id, row) === sum) {
            leaseDelivery.run(leaseEndMs, id);
            taken.push(row);
          } else {
            dropDelivery.run(id);
            lost++;
          }
        }
        if (lost > 0) options.onLost?.(lost);
        return taken;
      }),
    moveDelivery: (id: string, dueMs: number, row: string): Promise<unknown> =>
      write(() => moveDelivery.run(dueMs, row, sumOf(id, row), id)),
    dropDelivery: (id: string): Promise<unknown> => write(() => dropDelivery.run(id)),
    nextDueMs: (): number | undefined => nextDue.get()!.due ?? undefined,
    deliveryCount: (): number => countDeliveries.get()!.count,
    async close(): Promise<void> {
      await close();
      db.close();
    },
  };
}
