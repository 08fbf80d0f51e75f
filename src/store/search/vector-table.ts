import { loadSqliteVec } from "../sqlite-vec.ts";
import type { IndexStore } from "./index-store.ts";

/** A vector as it is kept: bytes of its own scale, and a bit a dimension for the first pass over many. */
export interface PackedVector {
  readonly bytes: Int8Array;
  readonly bits: Uint8Array;
}

/** What made the vectors: others cannot be compared with them. */
export interface VectorModel {
  readonly id: string;
  readonly dimension: number;
}

export interface PendingText {
  /** Hex. */
  readonly hash: string;
  readonly text: string;
}

/** Vectors a unit has at most: their numbers are the unit's, times this, and the part's. */
const PARTS = 32;
/** From so many vectors on, bits decide which are compared at all. */
const BITS_FROM = 50_000;
/** So few units are compared one by one rather than picked out of all vectors. */
const FEW_UNITS = 2_000;
/** How many of those are compared for each that is asked for; vec0 takes longer the more it is to find. */
const BITS_FACTOR = 4;
const MOST_BY_BITS = 256;
/** How often a text may end the process that embeds it. */
export const MOST_TRIES = 2;

export type VectorTable = ReturnType<typeof createVectorTable>;

/**
 * The vectors of an index. `model` is what makes them now: those of another one are dropped, and their texts wait anew.
 * Answers a reason instead where this machine cannot search vectors.
 */
export function openVectorTable(
  store: IndexStore,
  model: VectorModel,
  nativeDir: string,
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
  return { table: createVectorTable(store, model) };
}

const vectorSchema = (dimension: number): string =>
  `CREATE VIRTUAL TABLE vec USING vec0(id INTEGER PRIMARY KEY, embedding int8[${dimension}] distance_metric=cosine, bits bit[${dimension}])`;

function createVectorTable(store: IndexStore, model: VectorModel) {
  const { db } = store;
  const add = db.query<null, [number, Uint8Array, Uint8Array]>(
    "INSERT INTO vec(id, embedding, bits) VALUES(?, vec_int8(?), vec_bit(?))",
  );
  const drop = db.query<null, [number]>("DELETE FROM vec WHERE id = ?");
  const known = db.query<{ vector: Uint8Array }, [Uint8Array]>(
    "SELECT vector FROM embeddings WHERE hash = ? ORDER BY part",
  );
  const keep = db.query<null, [Uint8Array, number, Uint8Array]>(
    "INSERT OR REPLACE INTO embeddings(hash, part, vector) VALUES(?, ?, ?)",
  );
  const partsOf = db.query<{ parts: number }, [number]>("SELECT parts FROM units WHERE id = ?");
  const setState = db.query<null, [number, number, number]>("UPDATE units SET vector = ?, parts = ? WHERE id = ?");
  const newest = db.query<{ id: number; hash: Uint8Array; text: string }, [number]>(
    "SELECT id, hash, text FROM units WHERE vector = 1 ORDER BY id DESC LIMIT ?",
  );
  const oldest = db.query<{ id: number; hash: Uint8Array; text: string }, [number]>(
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
  const nearestByBits = db.query<{ id: number }, [Uint8Array, number]>(
    "SELECT id, distance FROM vec WHERE bits MATCH vec_bit(?) AND k = ?",
  );
  const vectorsOf = db.query<{ id: number; vector: Uint8Array }, [string, number]>(
    `SELECT u.id, e.vector FROM units u JOIN embeddings e ON e.hash = u.hash
     WHERE u.vector = 2 AND u.id IN (SELECT value FROM json_each(?)) AND e.part < ?`,
  );
  const partCounts = db.query<{ id: number; parts: number }, [string]>(
    "SELECT id, parts FROM units WHERE vector = 2 AND id IN (SELECT value FROM json_each(?))",
  );
  /** Vectors there are; counted once, then kept in step. */
  let count = vectorCount.get()?.n ?? 0;

  const put = (unit: number, blobs: readonly Uint8Array[]): void => {
    const parts = blobs.slice(0, PARTS);
    parts.forEach((blob, part) => {
      add.run(unit * PARTS + part, blob.subarray(0, model.dimension), blob.subarray(model.dimension));
    });
    setState.run(2, parts.length, unit);
    count += parts.length;
  };

  /** Units whose text was embedded before get their vectors without being asked for again. */
  const reuse = (unit: number, hash: Uint8Array): boolean => {
    const blobs = known.all(hash).map(({ vector }) => vector);
    if (blobs.length === 0) return false;
    put(unit, blobs);
    return true;
  };

  store.follow({
    added: (id, hash) => void reuse(id, hash),
    dropped(id) {
      const parts = partsOf.get(id)?.parts ?? 0;
      for (let part = 0; part < parts; part++) drop.run(id * PARTS + part);
      count -= parts;
    },
  });

  return {
    model,
    pendingCount: (): number => pendingCount.get()?.n ?? 0,
    /** Texts that wait for their vectors, the latest and the longest waiting; those known already get them here. */
    pending(limit: number): PendingText[] {
      return store.transaction(() => {
        const half = Math.ceil(limit / 2);
        const rows = new Map([...newest.all(half), ...oldest.all(limit - half)].map((row) => [row.id, row]));
        const texts = new Map<string, PendingText>();
        for (const { id, hash, text } of rows.values()) {
          if (reuse(id, hash)) continue;
          if ((refused.get(hash)?.tries ?? 0) >= MOST_TRIES) setState.run(3, 0, id);
          else texts.set(Buffer.from(hash).toString("hex"), { hash: Buffer.from(hash).toString("hex"), text });
        }
        return [...texts.values()];
      });
    },
    /** Keeps the vectors of texts, and gives them to all units with such a text. */
    keep(texts: readonly { readonly hash: string; readonly vectors: readonly PackedVector[] }[]): void {
      store.transaction(() => {
        for (const { hash: hex, vectors } of texts) {
          const hash = Buffer.from(hex, "hex");
          for (const [part, { bytes, bits }] of vectors.entries())
            keep.run(hash, part, Buffer.concat([bytesOf(bytes), bits]));
          for (const { id } of waitingFor.all(hash)) reuse(id, hash);
        }
      });
    },
    /** A text ended the process that was to embed it. Answers how often. */
    noteFault(hex: string): number {
      const hash = Buffer.from(hex, "hex");
      refuse.run(hash);
      return refused.get(hash)?.tries ?? 0;
    },
    /**
     * The units nearest to a vector, best first; `score` is the cosine. `among`: only of these units.
     */
    search(query: PackedVector, limit: number, among: readonly number[] | undefined): { id: number; score: number }[] {
      const best = new Map<number, number>();
      for (const { unit, score } of candidates(query, limit, among))
        if (score > (best.get(unit) ?? Number.NEGATIVE_INFINITY)) best.set(unit, score);
      const found = [...best].map(([id, score]) => ({ id, score }));
      return found.sort((a, b) => b.score - a.score || a.id - b.id).slice(0, limit);
    },
  };

  function candidates(query: PackedVector, limit: number, among: readonly number[] | undefined): Scored[] {
    const bytes = bytesOf(query.bytes);
    if (among && among.length <= FEW_UNITS) return compared(query, among);
    if (among) {
      const ids = partCounts
        .all(JSON.stringify(among))
        .flatMap(({ id, parts }) => Array.from({ length: parts }, (_, part) => id * PARTS + part));
      return nearestAmong.all(bytes, limit, JSON.stringify(ids)).map(scored);
    }
    if (count < BITS_FROM) return nearest.all(bytes, limit).map(scored);
    const nearBits = nearestByBits.all(query.bits, Math.max(limit, Math.min(limit * BITS_FACTOR, MOST_BY_BITS)));
    return compared(query, [...new Set(nearBits.map(({ id }) => Math.floor(id / PARTS)))]);
  }

  /** The vectors of some units against one, read where they are kept: vec0 takes long to find a single one. */
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

const scored = ({ id, distance }: { id: number; distance: number }): Scored => ({
  unit: Math.floor(id / PARTS),
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
