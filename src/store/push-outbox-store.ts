import { renameSync, rmSync } from "node:fs";
import { createWaitingWrites } from "./commit/waiting-writes.ts";
import { isDamage, type Migration, openDatabase } from "./database/database.ts";
import { type KeptRepair, keepThrice, mendSmall } from "./database/kept-thrice.ts";
import { isLocked } from "./database/locked-database.ts";
import type { OwnDatabase } from "./database/own-database.ts";

const KEPT = ["outbox", "pruned_devices", "space_keys"].map((table) => ({ table }));

/** What this device still has to send to its push node. */
const MIGRATIONS: readonly Migration[] = [
  (db) => {
    db.exec(`
      -- One row a push that is to be sent; a burst in one chat for the same audience is one row, of its newest message.
      -- taken: it is being sent, and what comes now is another row.
      CREATE TABLE outbox(
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, space_id TEXT NOT NULL, chat_id TEXT NOT NULL, audience TEXT NOT NULL,
        message_id TEXT NOT NULL, queued_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0, taken INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
      CREATE UNIQUE INDEX outbox_waiting ON outbox(kind, space_id, chat_id, audience) WHERE taken = 0;
      CREATE INDEX outbox_by_due ON outbox(due_ms) WHERE taken = 0;
      -- Devices of the account that were pruned: the node is to forget their tokens.
      CREATE TABLE pruned_devices(peer_id TEXT PRIMARY KEY) WITHOUT ROWID;
      -- Public push keys that spaces of the account have or had: what the node holds under one that is over may go.
      CREATE TABLE space_keys(space_key TEXT PRIMARY KEY) WITHOUT ROWID;
    `);
  },
  (db) => {
    for (const kept of KEPT) keepThrice(db, kept);
  },
];

export type OutboxKind = "message" | "read";

export interface OutboxRow {
  /** 32 hex digits; the node accepts it only once, however often it is sent. */
  readonly id: string;
  readonly kind: OutboxKind;
  readonly spaceId: string;
  readonly chatId: string;
  /** The accounts that the push addresses, as one text: pushes of a chat to the same audience are merged. */
  readonly audience: string;
  /** Empty for a reading. */
  readonly messageId: string;
  readonly queuedMs: number;
  readonly dueMs: number;
  readonly attempts: number;
}

const COLUMNS =
  "id, kind, space_id AS spaceId, chat_id AS chatId, audience, message_id AS messageId, queued_ms AS queuedMs, due_ms AS dueMs, attempts";

interface PushOutboxOptions {
  /** Told of tables that the disk changed, as they are set right when the store is opened. */
  onRepair?(repairs: readonly KeptRepair[]): void;
  onDamage(error: unknown): void;
  /** Something could not be written. */
  onFault(error: unknown): void;
}

export type PushOutboxStore = ReturnType<typeof openPushOutboxStore>;

/**
 * Survives the end of the process at any moment. It is not synced to the disk at each row, so that nobody's message waits for
 * a notification: a power failure may cost the notifications of its last moments. A damaged file is set aside as
 * `<path>.damaged`, in place of one set aside before: notifications are no reason to keep a server from starting. What is
 * written waits, in its order, for as long as another program has the file locked.
 */
export function openPushOutboxStore(path: string, { onDamage, onFault, onRepair }: PushOutboxOptions) {
  const db = openOrSetAside(path, onDamage, onRepair);
  const { writeInTime, close } = createWaitingWrites(db, { whose: "the push queue's" });
  const inTime = (run: () => unknown): void => void writeInTime(run).catch(onFault);
  const mend = () => mendSmall(db, KEPT, onRepair);
  inTime(mend);
  // Whoever reads it fails, once the statement that met it has ended.
  db.onMistyped(() => queueMicrotask(() => inTime(mend)));
  // Whatever was under way when the process ended is sent again; where its place was taken, the newer row has it.
  inTime(() => db.exec("UPDATE OR REPLACE outbox SET taken = 0 WHERE taken = 1"));
  const put = db.query<null, [string, OutboxKind, string, string, string, string, number, number]>(
    `INSERT INTO outbox(id, kind, space_id, chat_id, audience, message_id, queued_ms, due_ms) VALUES(?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT(kind, space_id, chat_id, audience) WHERE taken = 0 DO UPDATE SET message_id = excluded.message_id, queued_ms = excluded.queued_ms`,
  );
  const due = db.query<OutboxRow, [number, number]>(
    `SELECT ${COLUMNS} FROM outbox WHERE taken = 0 AND due_ms <= ? ORDER BY due_ms LIMIT ?`,
  );
  const take = db.query<null, [string]>("UPDATE outbox SET taken = 1 WHERE id = ?");
  const giveBack = db.query<null, [string, number, string]>(
    "UPDATE OR IGNORE outbox SET taken = 0, attempts = attempts + 1, message_id = ?, due_ms = ? WHERE id = ?",
  );
  const drop = db.query<null, [string]>("DELETE FROM outbox WHERE id = ?");
  const dropSpace = db.query<null, [string]>("DELETE FROM outbox WHERE space_id = ?");
  const next = db.query<{ due: number | null }, []>("SELECT min(due_ms) AS due FROM outbox WHERE taken = 0");
  const dropOld = db.query<null, [number]>("DELETE FROM outbox WHERE queued_ms < ?");
  const addPruned = db.query<null, [string]>("INSERT OR IGNORE INTO pruned_devices(peer_id) VALUES(?)");
  const pruned = db.query<{ peerId: string }, []>("SELECT peer_id AS peerId FROM pruned_devices ORDER BY peer_id");
  const dropPruned = db.query<null, [string]>("DELETE FROM pruned_devices WHERE peer_id = ?");
  const addKey = db.query<null, [string]>("INSERT OR IGNORE INTO space_keys(space_key) VALUES(?)");
  const hasKey = db.query<{ found: number }, [string]>("SELECT 1 AS found FROM space_keys WHERE space_key = ?");
  return {
    /** Queues a push; one that waits for the same audience of the same chat takes its message over, and keeps its time. */
    put: ({ id, kind, spaceId, chatId, audience, messageId, queuedMs, dueMs }: Omit<OutboxRow, "attempts">): void =>
      inTime(() => put.run(id, kind, spaceId, chatId, audience, messageId, queuedMs, dueMs)),
    /** Rows that are due, which nothing is merged into from now on. */
    takeDue: (nowMs: number, limit: number): Promise<OutboxRow[]> =>
      writeInTime(() => {
        const rows = due.all(nowMs, limit);
        for (const { id } of rows) take.run(id);
        return rows;
      }),
    /** It was not sent: it waits again, unless a newer one of the same audience does. */
    giveBack: (id: string, messageId: string, dueMs: number): void =>
      inTime(() => {
        if (giveBack.run(messageId, dueMs, id).changes === 0) drop.run(id);
      }),
    drop: (id: string): void => inTime(() => drop.run(id)),
    dropSpace: (spaceId: string): void => inTime(() => dropSpace.run(spaceId)),
    nextDueMs: (): number | undefined => next.get()!.due ?? undefined,
    /** Drops what was queued before; answers how many. */
    dropOld: (beforeMs: number): Promise<number> => writeInTime(() => dropOld.run(beforeMs).changes),
    addPruned: (peerId: string): void => inTime(() => addPruned.run(peerId)),
    pruned: (): string[] => pruned.all().map(({ peerId }) => peerId),
    dropPruned: (peerId: string): void => inTime(() => dropPruned.run(peerId)),
    noteKeys: (spaceKeys: readonly string[]): Promise<void> =>
      writeInTime(() => {
        for (const spaceKey of spaceKeys) addKey.run(spaceKey);
      }),
    isKnownKey: (spaceKey: string): boolean => hasKey.get(spaceKey) !== null,
    async close(): Promise<void> {
      await close();
      db.close();
    },
  };
}

function openOrSetAside(
  path: string,
  onDamage: (error: unknown) => void,
  onRepair: PushOutboxOptions["onRepair"],
): OwnDatabase {
  try {
    return openWhole(path, onRepair);
  } catch (error) {
    if (!isDamage(error)) throw error;
    onDamage(error);
    for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
    renameSync(path, `${path}.damaged`);
    return openWhole(path, onRepair);
  }
}

/** Opens the database and reads all of it: it is small, and damage found later would stop pushes for good. */
function openWhole(path: string, onRepair: PushOutboxOptions["onRepair"]): OwnDatabase {
  const db = openDatabase(path, { migrations: MIGRATIONS, durability: "normal" });
  try {
    mendIfFree(db, onRepair);
    const fault = db.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get()!.quick_check;
    if (fault !== "ok") throw new Error(`${path} is malformed: ${fault}`);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** What copies say again is no damage of the file. While another program has it locked, this is done later. */
function mendIfFree(db: OwnDatabase, onRepair: PushOutboxOptions["onRepair"]): void {
  try {
    mendSmall(db, KEPT, onRepair);
  } catch (error) {
    if (!isLocked(error)) throw error;
  }
}
