import { type Migration, openDatabase } from "./database.ts";

/** What of an account is this device's own: intents of what spans databases, and which spaces were closed in order. */
const MIGRATIONS: readonly Migration[] = [
  (db) => {
    db.exec(`
      CREATE TABLE meta(key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
      -- Begun but perhaps not finished: carried out again at boot until it is.
      CREATE TABLE intents(space_id TEXT PRIMARY KEY, payload BLOB NOT NULL) WITHOUT ROWID;
      -- clean: closed in order with nothing left to do; such a space needs no visit at boot.
      CREATE TABLE local_spaces(space_id TEXT PRIMARY KEY, clean INTEGER NOT NULL DEFAULT 0, projection INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
    `);
  },
];

export type AccountStore = ReturnType<typeof openAccountStore>;

export function openAccountStore(path: string) {
  const db = openDatabase(path, { migrations: MIGRATIONS, durability: "full" });
  const putIntent = db.query<null, [string, Uint8Array]>(
    "INSERT INTO intents(space_id, payload) VALUES(?, ?) ON CONFLICT(space_id) DO UPDATE SET payload = excluded.payload",
  );
  const dropIntent = db.query<null, [string]>("DELETE FROM intents WHERE space_id = ?");
  const intents = db.query<{ space_id: string; payload: Uint8Array }, []>(
    "SELECT space_id, payload FROM intents ORDER BY space_id",
  );
  const localSpace = db.query<{ clean: number; projection: number }, [string]>(
    "SELECT clean, projection FROM local_spaces WHERE space_id = ?",
  );
  const markSpace = db.query<null, [string, number, number]>(
    "INSERT INTO local_spaces(space_id, clean, projection) VALUES(?, ?, ?) ON CONFLICT(space_id) DO UPDATE SET clean = excluded.clean, projection = excluded.projection",
  );
  const forgetSpace = db.query<null, [string]>("DELETE FROM local_spaces WHERE space_id = ?");
  return {
    putIntent: (spaceId: string, payload: Uint8Array) => void putIntent.run(spaceId, payload),
    dropIntent: (spaceId: string) => void dropIntent.run(spaceId),
    intents: () => intents.all().map((row) => ({ spaceId: row.space_id, payload: row.payload })),
    isClean: (spaceId: string, projection: number): boolean => {
      const row = localSpace.get(spaceId);
      return row?.clean === 1 && row.projection === projection;
    },
    markClean: (spaceId: string, clean: boolean, projection: number) =>
      void markSpace.run(spaceId, clean ? 1 : 0, projection),
    forgetSpace: (spaceId: string) => void forgetSpace.run(spaceId),
    close: () => db.close(),
  };
}
