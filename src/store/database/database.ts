import { Database } from "bun:sqlite";
import { chmodSync, closeSync, existsSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { isJsonFault, StoredFileError } from "../../protocol/storage-fault.ts";
import { OwnDatabase } from "./own-database.ts";

/** One step of a schema's history. Steps are never edited once released; a new one is added. */
export type Migration = (db: Database) => void;

/** What a kind of database holds. The version is kept in `user_version`: so many given up, and one a migration. */
export interface Schema {
  /** Applied in order. */
  migrations: readonly Migration[];
  /** Versions from before the first release that this program does not read. Default 0. */
  givenUp?: number;
  /** What `bytesOfEmpty` makes of it: with these a new database is laid down. */
  empty?: () => Uint8Array;
}

export interface OpenOptions extends Schema {
  /**
   * `full`: a commit is durable when it returns. `normal`: only for what can be rebuilt.
   */
  durability: "full" | "normal";
}

const SYNCHRONOUS = { full: "FULL", normal: "NORMAL" } as const;

/** The file was written by a newer program. Nothing was changed. */
class NewerSchemaError extends StoredFileError {
  constructor(path: string, found: number, known: number) {
    super(
      "version",
      `${path} has schema version ${found}, this program knows ${known}: use the newer svc that wrote it`,
    );
  }
}

/** The file was written before the first release, in a form that is given up. Nothing was changed. */
class GivenUpSchemaError extends StoredFileError {
  constructor(path: string, found: number, least: number) {
    super(
      "version",
      `${path} has schema version ${found}, from before the first release; this program reads version ${least} and later. ` +
        "Move the data directory away and start anew, or use the svc that wrote it",
    );
  }
}

/**
 * Opens (creating if absent) a database of ours: WAL, the asked durability, migrated to the newest schema.
 * Throws NewerSchemaError for a file of a later program, GivenUpSchemaError for one from before the first release,
 * StoredFileError for one whose tables are not as its migrations make them, and SQLite's own error for a damaged one, or one
 * that another program has locked.
 */
export function openDatabase(path: string, options: OpenOptions): OwnDatabase {
  const empty = path === IN_MEMORY || !existsSync(path) ? options.empty?.() : undefined;
  const db = openFile(path, empty);
  try {
    db.exec(`
      -- Nothing else happens while a statement waits for another connection: who has to wait tries again, off the loop.
      PRAGMA busy_timeout = 0;
      PRAGMA synchronous = ${SYNCHRONOUS[options.durability]};
      PRAGMA journal_mode = WAL;
      PRAGMA fullfsync = ${options.durability === "normal" ? 0 : 1};
      PRAGMA checkpoint_fullfsync = ${options.durability === "normal" ? 0 : 1};
      PRAGMA foreign_keys = ON;
      PRAGMA cache_size = -16384;
      PRAGMA mmap_size = 0;
      PRAGMA temp_store = MEMORY;
      -- Rows are plain text: what is deleted is overwritten, not left in free pages. Costs nothing that can be measured.
      PRAGMA secure_delete = ON;
      PRAGMA wal_autocheckpoint = 4000;
      PRAGMA journal_size_limit = 67108864;
      PRAGMA trusted_schema = OFF;
      -- Triggers that keep copies of a row hear of rows that a REPLACE takes away.
      PRAGMA recursive_triggers = ON;
    `);
    migrate(db, path, options);
    if (options.migrations.length > 0) {
      requireSchema(db, path, options);
      db.preparesLate = true;
    }
    return db;
  } catch (error) {
    db.close();
    throw error instanceof StoredFileError ? error : namingFile(path, error);
  }
}

/** Instead of a path: what is written goes nowhere. */
export const IN_MEMORY = ":memory:";

function openFile(path: string, empty: Uint8Array | undefined): OwnDatabase {
  try {
    if (path === IN_MEMORY) return empty ? OwnDatabase.ofBytes(empty) : new OwnDatabase(path);
    if (empty) layDown(path, empty);
    else forItsOwnerAlone(path);
    return new OwnDatabase(path, { create: true, readwrite: true });
  } catch (error) {
    throw namingFile(path, error);
  }
}

/** Where a file says that it is in WAL mode (https://sqlite.org/fileformat2.html, 1.3). One in memory cannot be. */
const [WRITE_VERSION_AT, READ_VERSION_AT, WAL_VERSION] = [18, 19, 2];

/**
 * Makes a file of what `serialize` gave of a database. Under its name a file is never there in part, nor beside what is left of
 * another file of this name. SQLite syncs its directory, with the log that it begins there before anything is committed. It is in
 * WAL mode already: SQLite would sync four times to bring it there.
 */
export function layDown(path: string, bytes: Uint8Array): void {
  const temporary = `${path}.new`;
  const inWal = new Uint8Array(bytes).fill(WAL_VERSION, WRITE_VERSION_AT, READ_VERSION_AT + 1);
  for (const left of [temporary, `${path}-wal`, `${path}-shm`, `${path}-journal`]) rmSync(left, { force: true });
  writeFileSync(temporary, inWal, { flag: "wx", mode: 0o600, flush: true });
  renameSync(temporary, path);
}

/**
 * Makes a database's file for its owner alone; what SQLite lays beside it (logs, the index of a log) gets the same mode. One
 * that is there is not opened for it: closing it again would drop the locks that this process has on it.
 */
export function forItsOwnerAlone(path: string): void {
  if (process.platform === "win32") return;
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    chmodSync(path, 0o600);
  }
}

/** SQLite does not say which file it is about. */
export function namingFile(path: string, error: unknown): Error {
  return new Error(`${path}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
}

const DAMAGE = /SQLITE_CORRUPT|SQLITE_NOTADB/;

/** Whether SQLite says that a file is not what it should be; nothing else is a reason to do without it. */
export function isDamage(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause)
    if (DAMAGE.test((each as { code?: string }).code ?? "") || isJsonFault(each)) return true;
  return false;
}

function migrate(db: Database, path: string, { migrations, givenUp = 0 }: Schema): void {
  const found = (db.query("PRAGMA user_version").get() as { user_version: number }).user_version;
  const known = givenUp + migrations.length;
  if (found > known) throw new NewerSchemaError(path, found, known);
  if (found > 0 && found <= givenUp) throw new GivenUpSchemaError(path, found, givenUp + 1);
  for (let step = Math.max(0, found - givenUp); step < migrations.length; step++) {
    db.transaction(() => {
      migrations[step]!(db);
      db.exec(`PRAGMA user_version = ${givenUp + step + 1}`);
    })();
  }
}

/** The bytes of a database that a schema's migrations made, with nothing in it. */
export function bytesOfEmpty(schema: Schema): Uint8Array {
  using db = new Database(IN_MEMORY);
  db.exec("PRAGMA secure_delete = ON"); // nothing is left of how it came about
  migrate(db, IN_MEMORY, schema);
  return db.serialize();
}

/** What SQLite keeps of tables, indexes and triggers, by name. */
function schemaTexts(db: Database): ReadonlyMap<string, string> {
  const rows = db.query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL");
  return new Map(rows.all().map(({ name, sql }) => [name, sql]));
}

const madeByMigrations = new Map<readonly Migration[], ReadonlyMap<string, string>>();

/** Returns the texts that the migrations leave in an empty database; a process works them out once for each schema. */
function textsMadeBy(schema: Schema): ReadonlyMap<string, string> {
  const { migrations, empty = () => bytesOfEmpty(schema) } = schema;
  const known = madeByMigrations.get(migrations);
  if (known) return known;
  using db = Database.deserialize(empty());
  const made = schemaTexts(db);
  madeByMigrations.set(migrations, made);
  return made;
}

/**
 * Throws where a file says otherwise of a table, an index or a trigger of ours than the migrations: it was changed, and what
 * reads or writes it would fail later, or do something else.
 */
function requireSchema(db: Database, path: string, schema: Schema): void {
  const found = schemaTexts(db);
  for (const [name, sql] of textsMadeBy(schema))
    if (found.get(name) !== sql)
      throw new StoredFileError("damaged", `${path}: ${name} is not as this program makes it`);
}

/** A read-only connection to a database that another connection of ours keeps open. */
export function openReader(path: string): Database {
  const db = new Database(path, { readonly: true });
  db.exec(
    "PRAGMA busy_timeout = 5000; PRAGMA query_only = ON; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;",
  );
  return db;
}
