import type { Database } from "bun:sqlite";
import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { checksumOf, checksumWith } from "../../base/checksum.ts";
import { isDamage, openDatabase } from "../database/database.ts";
import { createIndexTables, dropUnits, INDEX_SCHEMA } from "./index-schema.ts";

/** One thing that can be found. */
export interface IndexUnit {
  readonly object: string;
  readonly dataset: string;
  readonly record: string;
  readonly chunk: number;
  readonly scope: string;
  readonly text: string;
  readonly embed: boolean;
}

export interface StoredUnit extends IndexUnit {
  readonly id: number;
  readonly collectionId: number;
  readonly row: number;
}

/** The tokens of a text, joined by spaces, as UTF-8. Valid until the next text is tokenised. */
export interface IndexTokens {
  readonly exact: Uint8Array;
  readonly words: Uint8Array;
}

export interface IndexStoreOptions {
  /** Tokenises texts; the result is always the same for the same text and fingerprint. */
  readonly tokenise: (text: string) => IndexTokens;
  /** Identifies the way texts are tokenised and sources are read. */
  readonly fingerprint: string;
}

/** Where a unit may be; a field that is absent allows anything. */
export interface UnitScope {
  readonly scopes?: readonly string[] | undefined;
  readonly objectId?: string | undefined;
  readonly dataset?: string | undefined;
}

/** Why an index is filled from the beginning. */
export type RebuildReason = "new" | "damaged" | "version" | "cuts";

export type IndexStore = ReturnType<typeof createIndexStore>;

export interface RawUnit {
  id: number;
  collectionId: number;
  row: number;
  object: string;
  dataset: string;
  record: string;
  chunk: number;
  scope: string;
  text: string;
  vector: number;
  sum: number;
}

/** The content of an index is damaged. The index is made anew from the space. */
export class IndexDamagedError extends Error {
  /** The code that SQLite gives for damage that it notices itself. */
  readonly code = "SQLITE_CORRUPT";
  constructor(what: string) {
    super(`the search index is not what it was: ${what}`);
  }
}

/** Only one thread of this program writes; this is how long it waits for another program that holds the file. */
const BUSY_MS = 500;
export const UNIT_COLUMNS = "id, collectionId, row, object, dataset, record, chunk, scope, text, vector, sum";
/** Separates the parts of a key; none of the texts contains it. */
const APART = "\u0000";

/**
 * Opens the index of a space, and creates it if there is none. It deletes a damaged file; from a file of another version it
 * removes what can be found, and keeps the embeddings. On every other fault (permissions, a full disk, a lock) it throws, and
 * nothing is lost.
 */
export function openIndexStore(
  path: string,
  options: IndexStoreOptions,
): { store: IndexStore; rebuild: RebuildReason | undefined } {
  try {
    return openOnce(path, options);
  } catch (error) {
    if (!isDamage(error)) throw error;
    removeIndexFiles(path);
    return { ...openOnce(path, options), rebuild: "damaged" };
  }
}

export function removeIndexFiles(path: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
}

function openOnce(path: string, options: IndexStoreOptions) {
  const db = openDatabase(path, { migrations: [], durability: "normal" });
  try {
    db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    const isNew = db.query("SELECT 1 FROM sqlite_master WHERE name = 'meta'").get() === null;
    if (isNew) db.transaction(() => createIndexTables(db))();
    const meta = (key: string) =>
      db.query<{ value: string }, [string]>("SELECT value FROM meta WHERE key = ?").get(key)?.value;
    const rebuild: RebuildReason | undefined =
      meta("schema") === undefined
        ? "new"
        : meta("schema") !== String(INDEX_SCHEMA)
          ? "version"
          : meta("fingerprint") !== options.fingerprint
            ? "cuts"
            : undefined;
    if (rebuild)
      db.transaction(() => {
        if (!isNew) dropUnits(db);
        const put = db.query<null, [string, string]>("INSERT OR REPLACE INTO meta(key, value) VALUES(?, ?)");
        put.run("schema", String(INDEX_SCHEMA));
        put.run("fingerprint", options.fingerprint);
      })();
    return { store: createIndexStore(db, options.tokenise), rebuild };
  } catch (error) {
    db.close();
    throw error;
  }
}

const ENCODED = /[^a-z0-9]/g;
/** Returns a word of the column for filters. */
export function filterToken(kind: "scope" | "object" | "dataset", value: string): string {
  return kind[0] + value.replace(ENCODED, (char) => String.fromCharCode(0xe000 + (char.charCodeAt(0) & 0x7f)));
}

/** Units are divided into this many samples by what they are, so that the samples stay the same when the index is made anew. */
const SAMPLES = 64;
/** Returns a word of the same column, which says that the unit belongs to a sample. */
export const sampleToken = (sample: number): string => `n${sample}`;

function sampleOf(record: string, chunk: number): number {
  let hash = chunk;
  for (let at = 0; at < record.length; at++) hash = (Math.imul(hash, 31) + record.charCodeAt(at)) | 0;
  return ((hash ^ (hash >>> 15)) >>> 0) % SAMPLES;
}

/** The tokens by which a search narrows to a scope, an object, a dataset or a sample of records. */
export function filtersOfUnit({ scope, object, dataset, record, chunk }: Omit<IndexUnit, "text" | "embed">): string {
  return `${filterToken("scope", scope)} ${filterToken("object", object)} ${filterToken("dataset", dataset)} ${sampleToken(sampleOf(record, chunk))}`;
}

/** Returns the checksum of everything in a unit that never changes. */
export function sumOfUnit(unit: Omit<RawUnit, "id" | "vector" | "sum">): number {
  const { collectionId, row, object, dataset, record, chunk, scope, text } = unit;
  return checksumWith(checksumOf([object, dataset, record, scope, text].join(APART)), collectionId, row, chunk);
}

function createIndexStore(db: Database, tokenise: (text: string) => IndexTokens) {
  const getMeta = db.query<{ value: string }, [string]>("SELECT value FROM meta WHERE key = ?");
  const putMeta = db.query<null, [string, string]>("INSERT OR REPLACE INTO meta(key, value) VALUES(?, ?)");
  const ofSource = db.query<RawUnit, [number, number]>(
    `SELECT ${UNIT_COLUMNS} FROM units WHERE collectionId = ? AND row = ?`,
  );
  const ofCollection = db.query<RawUnit, [number]>(`SELECT ${UNIT_COLUMNS} FROM units WHERE collectionId = ?`);
  const ofObject = db.query<RawUnit, [string]>(`SELECT ${UNIT_COLUMNS} FROM units WHERE object = ?`);
  const ofDataset = db.query<RawUnit, [string, number, number]>(
    `SELECT ${UNIT_COLUMNS} FROM units WHERE dataset = ? AND row <= ? LIMIT ?`,
  );
  const byIds = db.query<RawUnit, [string]>(
    `SELECT ${UNIT_COLUMNS} FROM units WHERE id IN (SELECT value FROM json_each(?))`,
  );
  const add = db.query<null, [number, number, string, string, string, number, string, string, number, number]>(
    "INSERT INTO units(collectionId, row, object, dataset, record, chunk, scope, text, vector, sum) VALUES(?,?,?,?,?,?,?,?,?,?)",
  );
  const drop = db.query<null, [number]>("DELETE FROM units WHERE id = ?");
  const addWords = db.query<null, [number, Uint8Array, Uint8Array, string]>(
    "INSERT INTO ft(rowid, exact, words, filters) VALUES(?,?,?,?)",
  );
  const dropWords = db.query<null, [number, Uint8Array, Uint8Array, string]>(
    "INSERT INTO ft(ft, rowid, exact, words, filters) VALUES('delete',?,?,?,?)",
  );
  const best = db.query<{ id: number; rank: number }, [string, number]>(
    // Sorted outside of FTS5, which would look up again every row that it sorts.
    "SELECT id, rank FROM (SELECT rowid AS id, rank FROM ft WHERE ft MATCH ? LIMIT -1) ORDER BY rank LIMIT ?",
  );
  const tied = db.query<{ id: number; rank: number }, [string, number, number]>(
    `SELECT ft.rowid AS id, ft.rank AS rank FROM ft JOIN units u ON u.id = ft.rowid WHERE ft MATCH ? AND ft.rank <= ?
     ORDER BY round(ft.rank, 9), u.object, u.dataset, u.record, u.chunk, u.scope LIMIT ?`,
  );
  // Read as one text: an answer of a million rows would take far longer.
  const all = db.query<{ ids: string }, [string]>("SELECT json_group_array(rowid) AS ids FROM ft WHERE ft MATCH ?");
  const except = db.query<{ ids: string }, [string]>(
    "SELECT json_group_array(id) AS ids FROM units WHERE id NOT IN (SELECT rowid FROM ft WHERE ft MATCH ?)",
  );
  const within = db.query<{ id: number }, [string, string | null, string | null, string | null]>(
    `SELECT id FROM units WHERE id IN (SELECT value FROM json_each(?1)) AND (?2 IS NULL OR scope IN (SELECT value FROM json_each(?2)))
     AND (?3 IS NULL OR object = ?3) AND (?4 IS NULL OR dataset = ?4)`,
  );
  const listOf = (row: { ids: string } | null): number[] => JSON.parse(row?.ids ?? "[]") as number[];
  const lacking = db.query<null, []>("SELECT 1 FROM units WHERE vector = 1 LIMIT 1");
  const atMost = db.query<{ n: number }, [string, number]>(
    "SELECT count(*) AS n FROM (SELECT 1 FROM ft WHERE ft MATCH ? LIMIT ?)",
  );
  const prune = db.query<null, []>(
    "DELETE FROM embeddings WHERE hash NOT IN (SELECT hash FROM units WHERE hash IS NOT NULL)",
  );
  const anyEmbedding = db.query<null, []>("SELECT 1 FROM embeddings LIMIT 1");
  const unhashed = db.query<{ id: number; text: string }, [number]>(
    "SELECT id, text FROM units WHERE vector = 1 AND hash IS NULL LIMIT ?",
  );
  const setHash = db.query<null, [Uint8Array, number]>("UPDATE units SET hash = ? WHERE id = ?");
  const unitCount = db.query<{ n: number }, []>("SELECT count(*) AS n FROM units");
  /** Called when units are removed, inside the same transaction. */
  const followers: UnitFollower[] = [];

  const addUnit = (collectionId: number, row: number, given: IndexUnit): void => {
    const unit = asStored(given);
    const { object, dataset, record, chunk, scope, text } = unit;
    const sum = sumOfUnit({ collectionId, row, ...unit });
    const id = Number(
      add.run(collectionId, row, object, dataset, record, chunk, scope, text, unit.embed ? 1 : 0, sum).lastInsertRowid,
    );
    const { exact, words } = tokenise(text);
    addWords.run(id, exact, words, filtersOfUnit(unit));
  };

  const dropUnit = (unit: StoredUnit): void => {
    const { exact, words } = tokenise(unit.text);
    dropWords.run(unit.id, exact, words, filtersOfUnit(unit));
    if (unit.embed) for (const follower of followers) follower.dropped(unit.id);
    if (unit.embed && followers.length === 0) noteStaleVectors();
    drop.run(unit.id);
  };

  let isStaleNoted = false;
  /** Notes that units were removed while nothing kept their vectors in step; the vectors are later assembled anew. */
  const noteStaleVectors = (): void => {
    if (isStaleNoted || getMeta.get("model") === null) return;
    putMeta.run("vec", "stale");
    isStaleNoted = true;
  };

  let hasDropped = false;
  const dropAll = (units: readonly RawUnit[]): number => {
    for (const unit of units) dropUnit(toUnit(unit));
    hasDropped ||= units.length > 0;
    return units.length;
  };

  let hasVectorModule = false;
  return {
    db,
    /** Whether this connection has loaded the vector module. */
    isVectorModuleLoaded: (): boolean => hasVectorModule,
    noteVectorModule: (): void => {
      hasVectorModule = true;
    },
    follow(follower: UnitFollower): void {
      followers.splice(0, followers.length, follower);
    },
    transaction<T>(run: () => T): T {
      try {
        return db.transaction(run).immediate();
      } catch (error) {
        isStaleNoted = false;
        for (const follower of followers) follower.undone();
        throw error;
      }
    },
    meta: (key: string): string | undefined => getMeta.get(key)?.value,
    putMeta: (key: string, value: string) => void putMeta.run(key, value),
    /** Removes everything that can be found; embeddings stay. */
    reset(fingerprint: string): void {
      dropUnits(db);
      putMeta.run("schema", String(INDEX_SCHEMA));
      putMeta.run("fingerprint", fingerprint);
    },

    /** Makes the units of a source the given ones; equal ones stay. Returns how many were added and removed. */
    setSource(collectionId: number, row: number, units: readonly IndexUnit[]): number {
      const known = ofSource.all(collectionId, row);
      const old = new Map(known.map((unit) => [keyOf(unit), unit]));
      const fresh = known.length === 0 ? units : units.filter((unit) => !old.delete(keyOf(asStored(unit))));
      const dropped = dropAll([...old.values()]);
      for (const unit of fresh) addUnit(collectionId, row, unit);
      return dropped + fresh.length;
    },
    dropCollection: (collectionId: number): number => dropAll(ofCollection.all(collectionId)),
    dropObject: (objectId: string): number => dropAll(ofObject.all(objectId)),
    /** Removes up to `limit` units of a dataset, of rows up to a number. Returns how many it removed. */
    dropDataset: (dataset: string, lastRow: number, limit: number): number =>
      dropAll(ofDataset.all(dataset, lastRow, limit)),

    units: (ids: readonly number[]): StoredUnit[] => byIds.all(JSON.stringify(ids)).map(toUnit),
    count: (): number => unitCount.get()?.n ?? 0,
    /** Counts the units that match an expression, no further than `most`. */
    countMatches: (expression: string, most: number): number => atMost.get(expression, most)?.n ?? 0,
    /**
     * Returns the best matches of an FTS5 expression, best first; `score` is BM25, higher is better. Equal scores come in the
     * order of their keys, so that an index that was made anew gives the same answer.
     */
    match(expression: string, limit: number): { id: number; score: number }[] {
      const found = best.all(expression, limit + 1);
      const last = found[limit];
      const isLimitTied = last !== undefined && Math.abs(last.rank - found[limit - 1]!.rank) < 1e-9;
      const rows = isLimitTied ? tied.all(expression, last.rank + 1e-9, limit) : found.slice(0, limit);
      return rows.map(({ id, rank }) => ({ id, score: -rank }));
    },
    /** Whether units were removed since the last call. */
    takeDropped(): boolean {
      const had = hasDropped;
      hasDropped = false;
      return had;
    },
    /** Whether texts wait for their vectors, or vectors have to be assembled anew. */
    lacksVectors: (): boolean => lacking.get() !== null || getMeta.get("vec") !== null,
    /** Returns all units that match an expression. */
    matchAll: (expression: string): number[] => listOf(all.get(expression)),
    /** Returns all units except those that match an expression. */
    allExcept: (expression: string): number[] => listOf(except.get(expression)),
    /** Returns those of the given units that are within a scope. */
    withinScope(ids: readonly number[], { scopes, objectId, dataset }: UnitScope): number[] {
      const anyScope = scopes && scopes.length > 0 ? JSON.stringify(scopes) : null;
      return within.all(JSON.stringify(ids), anyScope, objectId || null, dataset || null).map((row) => row.id);
    },
    /**
     * Drops embeddings of texts that no unit has any more: they are of no use, and reveal what was said. First it hashes texts
     * that have no hash yet, so many at a time. Returns whether it is done.
     */
    pruneEmbeddings(): boolean {
      if (anyEmbedding.get() === null) return true;
      const left = unhashed.all(HASHES_A_PRUNE);
      for (const { id, text } of left) setHash.run(textHash(text), id);
      if (left.length === HASHES_A_PRUNE) return false;
      prune.run();
      return true;
    },
    /** The hash of a unit's text, kept with it. */
    hashOf(id: number, text: string): Uint8Array {
      const hash = textHash(text);
      setHash.run(hash, id);
      return hash;
    },
    /** Moves what was committed into the file and empties the log, so that deleted content is in neither. */
    emptyLog(): void {
      db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    },
    close(): void {
      try {
        db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      } finally {
        db.close();
      }
    },
  };
}

const HASHES_A_PRUNE = 2_000;

const textHash = (text: string): Uint8Array => createHash("sha256").update(text).digest().subarray(0, 16);

/** Keeps data that belongs to units in step with them. */
interface UnitFollower {
  dropped(id: number): void;
  /** What was added and removed since the transaction began was rolled back. */
  undone(): void;
}

/** SQLite returns another text for one that is not well-formed, so that other text is the one that is cut and summed. */
function asStored(unit: IndexUnit): IndexUnit {
  const { object, dataset, record, scope, text } = unit;
  if ([object, dataset, record, scope, text].every((each) => each.isWellFormed())) return unit;
  return {
    ...unit,
    object: object.toWellFormed(),
    dataset: dataset.toWellFormed(),
    record: record.toWellFormed(),
    scope: scope.toWellFormed(),
    text: text.toWellFormed(),
  };
}

function keyOf(unit: IndexUnit | RawUnit): string {
  const embed = "vector" in unit ? unit.vector !== 0 : unit.embed;
  return [unit.object, unit.dataset, unit.record, unit.chunk, unit.scope, embed, unit.text].join(APART);
}

function toUnit({ vector, sum, ...unit }: RawUnit): StoredUnit {
  if (sumOfUnit(unit) !== sum) throw new IndexDamagedError("a text");
  return { ...unit, embed: vector !== 0 };
}
