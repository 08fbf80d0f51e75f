import type { Database } from "bun:sqlite";
import { checksumOf } from "../../base/checksum.ts";
import { loadSqliteVec } from "../database/sqlite-vec.ts";
import type { IndexStore } from "./index-store.ts";
import { createSignScan, type SignScan } from "./sign-scan.ts";

/** A vector as it is stored: bytes with a scale of their own, and one bit per dimension for the first pass over many vectors. */
export interface PackedVector {
  readonly bytes: Int8Array;
  readonly bits: Uint8Array;
}

/** The model that made the vectors; vectors of different models cannot be compared. */
export interface VectorModel {
  readonly id: string;
  readonly dimension: number;
}

export interface PendingText {
  /** Hex. */
  readonly hash: string;
  readonly text: string;
}

/** How many vectors a unit has at most: a vector's number is the unit's number times this, plus the number of the part. */
const PARTS = 32;
/** From this many vectors on, the signs decide which vectors are compared at all. */
const SIGNS_FROM = 20_000;
/** Up to this many units are compared one by one instead of being picked out of all vectors. */
const FEW_UNITS = 2_000;
/** How many vectors are compared after the signs have chosen. */
const NEAREST_BY_SIGNS = 512;
/** How often further texts are picked when the picked ones turn out to be known. */
const MOST_LOOKS = 16;
/** How often a text may end the process that embeds it. */
export const MOST_TRIES = 2;

/** Which units may be found. */
export interface UnitFilter {
  /** How many there are, counted no further than `most`. */
  count(most: number): number;
  all(): number[];
  /** Returns those of the given units that may be found, where that is quick to tell. */
  among?(ids: readonly number[]): number[];
}

export type VectorTable = ReturnType<typeof createVectorTable>;

/**
 * Opens the vectors of an index. `model` is the current model: vectors of another one are dropped, and their texts wait again.
 * Returns a reason instead where this machine cannot search vectors.
 */
export function openVectorTable(
  store: IndexStore,
  model: VectorModel,
  nativeDir: string,
  { signsFrom = SIGNS_FROM }: { signsFrom?: number } = {},
): { table: VectorTable } | { reason: string } {
  const { db } = store;
  const loaded = store.isVectorModuleLoaded() ? undefined : loadSqliteVec(db, nativeDir);
  if (loaded && !loaded.loaded) return { reason: loaded.reason };
  store.noteVectorModule();
  const wanted = `${model.id} ${model.dimension}`;
  if (store.meta("model") !== wanted)
    store.transaction(() => {
      db.exec("DROP TABLE IF EXISTS vec; DELETE FROM embeddings; DELETE FROM refused");
      db.exec("UPDATE units SET vector = 1, parts = 0 WHERE vector IN (2, 3)");
      db.exec(vectorSchema(model.dimension));
      store.putMeta("model", wanted);
    });
  const isThere = db.query("SELECT 1 FROM sqlite_master WHERE name = 'vec'").get() !== null;
  if (!isThere || store.meta("vec") === "stale")
    store.transaction(() => {
      db.exec("DROP TABLE IF EXISTS vec; DELETE FROM meta WHERE key = 'vec'");
      db.exec("UPDATE units SET vector = 1, parts = 0 WHERE vector = 2");
      db.exec(vectorSchema(model.dimension));
    });
  return { table: createVectorTable(store, model, signsFrom) };
}

const vectorSchema = (dimension: number): string =>
  `CREATE VIRTUAL TABLE vec USING vec0(id INTEGER PRIMARY KEY, embedding int8[${dimension}] distance_metric=cosine, bits bit[${dimension}])`;

function createVectorTable(store: IndexStore, model: VectorModel, signsFrom: number) {
  const { db } = store;
  const add = db.query<null, [number, Uint8Array, Uint8Array]>(
    "INSERT INTO vec(id, embedding, bits) VALUES(?, vec_int8(?), vec_bit(?))",
  );
  const drop = db.query<null, [number]>("DELETE FROM vec WHERE id = ?");
  const known = db.query<{ vector: Uint8Array }, [Uint8Array]>(
    "SELECT vector FROM embeddings WHERE hash = ? ORDER BY part",
  );
  const keep = db.query<null, [Uint8Array, number, Uint8Array, number]>(
    "INSERT OR REPLACE INTO embeddings(hash, part, vector, sum) VALUES(?, ?, ?, ?)",
  );
  const partsOf = db.query<{ parts: number }, [number]>("SELECT parts FROM units WHERE id = ?");
  const setState = db.query<null, [number, number, number]>("UPDATE units SET vector = ?, parts = ? WHERE id = ?");
  const newest = db.query<{ id: number; hash: Uint8Array | null; text: string }, [number]>(
    "SELECT id, hash, text FROM units WHERE vector = 1 ORDER BY id DESC LIMIT ?",
  );
  const oldest = db.query<{ id: number; hash: Uint8Array | null; text: string }, [number]>(
    "SELECT id, hash, text FROM units WHERE vector = 1 ORDER BY id LIMIT ?",
  );
  const waitingFor = db.query<{ id: number }, [Uint8Array]>("SELECT id FROM units WHERE vector = 1 AND hash = ?");
  const pendingCount = db.query<{ n: number }, []>("SELECT count(*) AS n FROM units WHERE vector = 1");
  const refuse = db.query<null, [Uint8Array]>(
    "INSERT INTO refused(hash, tries) VALUES(?, 1) ON CONFLICT(hash) DO UPDATE SET tries = tries + 1",
  );
  const refused = db.query<{ tries: number }, [Uint8Array]>("SELECT tries FROM refused WHERE hash = ?");
  const vectorCount = db.query<{ n: number }, []>("SELECT sum(parts) AS n FROM units WHERE vector = 2");
  const nearest = db.query<{ id: number; distance: number }, [Uint8Array, number]>(
    "SELECT id, distance FROM vec WHERE embedding MATCH vec_int8(?) AND k = ?",
  );
  const nearestAmong = db.query<{ id: number; distance: number }, [Uint8Array, number, string]>(
    "SELECT id, distance FROM vec WHERE embedding MATCH vec_int8(?) AND k = ? AND id IN (SELECT value FROM json_each(?))",
  );
  const vectorsOf = db.query<{ id: number; vector: Uint8Array }, [string, number]>(
    `SELECT u.id, e.vector FROM units u JOIN embeddings e ON e.hash = u.hash
     WHERE u.vector = 2 AND u.id IN (SELECT value FROM json_each(?)) AND e.part < ?`,
  );
  const partCounts = db.query<{ id: number; parts: number }, [string]>(
    "SELECT id, parts FROM units WHERE vector = 2 AND id IN (SELECT value FROM json_each(?))",
  );
  /** How many vectors there are; counted once, then kept in step. */
  let count = vectorCount.get()?.n ?? 0;
  /** The signs of all vectors, while there are many vectors and somebody searches them. */
  let signs: SignScan | undefined;

  const put = (unit: number, blobs: readonly Uint8Array[]): void => {
    const parts = blobs.slice(0, PARTS);
    parts.forEach((blob, part) => {
      const bits = blob.subarray(model.dimension);
      add.run(unit * PARTS + part, blob.subarray(0, model.dimension), bits);
      signs?.add(unit * PARTS + part, bits);
    });
    setState.run(2, parts.length, unit);
    count += parts.length;
  };

  /** Gives units whose text was embedded before their vectors, without embedding the text again. */
  const reuse = (unit: number, hash: Uint8Array): boolean => {
    const blobs = known.all(hash).map(({ vector }) => vector);
    if (blobs.length === 0) return false;
    put(unit, blobs);
    return true;
  };

  store.follow({
    dropped(id) {
      const parts = partsOf.get(id)?.parts ?? 0;
      for (let part = 0; part < parts; part++) {
        drop.run(id * PARTS + part);
        signs?.drop(id * PARTS + part);
      }
      count -= parts;
    },
    undone() {
      count = vectorCount.get()?.n ?? 0;
      signs = undefined;
    },
  });

  return {
    model,
    pendingCount: (): number => pendingCount.get()?.n ?? 0,
    /**
     * Returns texts that wait for their vectors: the latest and those that waited longest. Texts that are already known get
     * theirs here.
     */
    pending(limit: number): PendingText[] {
      return store.transaction(() => {
        const texts = new Map<string, PendingText>();
        for (let looks = 0; looks < MOST_LOOKS && texts.size === 0; looks++) {
          const half = Math.ceil(limit / 2);
          const rows = new Map([...newest.all(half), ...oldest.all(limit - half)].map((row) => [row.id, row]));
          if (rows.size === 0) break;
          for (const { id, hash: known, text } of rows.values()) {
            const hash = known ?? store.hashOf(id, text);
            if (reuse(id, hash)) continue;
            const hex = Buffer.from(hash).toString("hex");
            if ((refused.get(hash)?.tries ?? 0) >= MOST_TRIES) setState.run(3, 0, id);
            else texts.set(hex, { hash: hex, text });
          }
        }
        return [...texts.values()];
      });
    },
    /** Stores the vectors of texts, and gives them to all units with such a text. */
    keep(texts: readonly { readonly hash: string; readonly vectors: readonly PackedVector[] }[]): void {
      store.transaction(() => {
        for (const { hash: hex, vectors } of texts) {
          const hash = Buffer.from(hex, "hex");
          for (const [part, { bytes, bits }] of vectors.entries()) {
            const vector = Buffer.concat([bytesOf(bytes), bits]);
            keep.run(hash, part, vector, checksumOf(vector));
          }
          for (const { id } of waitingFor.all(hash)) reuse(id, hash);
        }
      });
    },
    /** Notes that a text ended the process that had to embed it. Returns how often that happened. */
    noteFault(hex: string): number {
      const hash = Buffer.from(hex, "hex");
      refuse.run(hash);
      return refused.get(hash)?.tries ?? 0;
    },
    /** Returns the units nearest to a vector, best first; `score` is the cosine. `filter`: only among these units. */
    search(query: PackedVector, limit: number, filter: UnitFilter | undefined): { id: number; score: number }[] {
      const best = new Map<number, number>();
      for (const { unit, score } of candidates(query, limit, filter))
        if (score > (best.get(unit) ?? Number.NEGATIVE_INFINITY)) best.set(unit, score);
      const found = [...best].map(([id, score]) => ({ id, score }));
      return found.sort((a, b) => b.score - a.score || a.id - b.id).slice(0, limit);
    },
  };

  function candidates(query: PackedVector, limit: number, filter: UnitFilter | undefined): Scored[] {
    const bytes = bytesOf(query.bytes);
    if (filter && filter.count(FEW_UNITS + 1) <= FEW_UNITS) return compared(query, filter.all());
    if (count >= signsFrom) return compared(query, nearBySigns(query, Math.max(limit, NEAREST_BY_SIGNS), filter));
    if (!filter) return nearest.all(bytes, limit).map(scored);
    const ids = partCounts
      .all(JSON.stringify(filter.all()))
      .flatMap(({ id, parts }) => Array.from({ length: parts }, (_, part) => id * PARTS + part));
    return nearestAmong.all(bytes, limit, JSON.stringify(ids)).map(scored);
  }

  function nearBySigns({ bits }: PackedVector, wanted: number, filter: UnitFilter | undefined): number[] {
    if (!filter) return unitsOf(signsOfAll().nearest(bits, wanted));
    // Where most units pass the filter, many of the nearest do too. Where few pass, all that pass are found first.
    const near = filter.among?.(unitsOf(signsOfAll().nearest(bits, 2 * wanted))) ?? [];
    if (near.length >= wanted) return near;
    const passes = bitsOf(filter.all());
    return unitsOf(signsOfAll().nearest(bits, wanted, (id) => passes(unitOf(id))));
  }

  function signsOfAll(): SignScan {
    if (signs === undefined || signs.isWorn) signs = readSigns(db, model.dimension, count);
    return signs;
  }

  /** Compares some units with a vector, reading vec0's own tables: vec0 takes long to find a single vector. */
  function compared({ bytes }: PackedVector, units: readonly number[]): Scored[] {
    return vectorsOf
      .all(JSON.stringify(units), PARTS)
      .map(({ id, vector }) => ({ unit: id, score: cosine(bytes, vector, model.dimension) }));
  }
}

interface Scored {
  readonly unit: number;
  readonly score: number;
}

const unitOf = (id: number): number => Math.floor(id / PARTS);
const unitsOf = (ids: readonly number[]): number[] => [...new Set(ids.map(unitOf))];

/** Returns a test of whether a number is one of the given numbers. */
function bitsOf(numbers: readonly number[]): (number: number) => boolean {
  let largest = 0;
  for (const number of numbers) largest = Math.max(largest, number);
  const bits = new Uint8Array((largest >> 3) + 1);
  for (const number of numbers) bits[number >> 3]! |= 1 << (number & 7);
  return (number) => number <= largest && (bits[number >> 3]! & (1 << (number & 7))) !== 0;
}

/**
 * Reads the signs from vec0's own tables: blocks of vectors, of which those count whose bit is set in `validity`. Asking vec0 for
 * each vector would take a hundred times as long.
 */
function readSigns(db: Database, dimension: number, count: number): SignScan {
  const scan = createSignScan(dimension, count);
  const blocks = db.query<{ size: number; validity: Uint8Array; rowids: Uint8Array; vectors: Uint8Array }, []>(
    "SELECT c.size, c.validity, c.rowids, v.vectors FROM vec_chunks c JOIN vec_vector_chunks01 v ON v.rowid = c.chunk_id",
  );
  const width = dimension / 8;
  for (const { size, validity, rowids, vectors } of blocks.iterate()) {
    const ids = new DataView(rowids.buffer, rowids.byteOffset, rowids.byteLength);
    for (let i = 0; i < size; i++)
      if ((validity[i >> 3]! & (1 << (i & 7))) !== 0)
        scan.add(Number(ids.getBigInt64(i * 8, true)), vectors.subarray(i * width, (i + 1) * width));
  }
  return scan;
}

const scored = ({ id, distance }: { id: number; distance: number }): Scored => ({
  unit: unitOf(id),
  score: 1 - distance,
});

function cosine(a: Int8Array, kept: Uint8Array, dimension: number): number {
  const b = new Int8Array(kept.buffer, kept.byteOffset, dimension);
  let dot = 0;
  let squaresA = 0;
  let squaresB = 0;
  for (let i = 0; i < dimension; i++) {
    const x = a[i]!;
    const y = b[i]!;
    dot += x * y;
    squaresA += x * x;
    squaresB += y * y;
  }
  return squaresA === 0 || squaresB === 0 ? 0 : dot / Math.sqrt(squaresA * squaresB);
}

const bytesOf = (signed: Int8Array): Uint8Array => new Uint8Array(signed.buffer, signed.byteOffset, signed.length);
