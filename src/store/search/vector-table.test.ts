/** [vec] Vectors by their signs first: what is found is what comparing all of them finds. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { createRng } from "../../../test/support/rng.ts";
import { scratchDir } from "../../../test/support/scratch.ts";
import { packVector } from "../../search/model/packed-vector.ts";
import { type IndexStore, openIndexStore } from "./index-store.ts";
import { openVectorTable, type PackedVector, type UnitFilter, type VectorTable } from "./vector-table.ts";

const DIMENSION = 64;
const NOTHING = { exact: new Uint8Array(), words: new Uint8Array() };

function openWith(path: string, signsFrom: number): { store: IndexStore; table: VectorTable } {
  const { store } = openIndexStore(join(path, "index.db"), { tokenise: () => NOTHING, fingerprint: "one" });
  const opened = openVectorTable(store, { id: "made", dimension: DIMENSION }, path, { signsFrom });
  if (!("table" in opened)) throw new Error(opened.reason);
  return { store, table: opened.table };
}

const unit = (text: string) => ({
  object: "o",
  dataset: "d",
  record: text,
  chunk: 0,
  scope: "basic",
  text,
  embed: true,
});

describe("the first pass over signs", () => {
  test("finds what comparing all finds, while vectors come and go and transactions fail", () => {
    using scratch = scratchDir("svc-signs");
    const rng = createRng(3);
    const { store, table } = openWith(scratch.path, 1);
    const vectors = new Map<number, PackedVector>();
    const made = () =>
      packVector(
        Float32Array.from({ length: DIMENSION }, () => rng.next() - 0.5),
        undefined,
      );
    const put = (row: number): void => {
      store.transaction(() => void store.setSource(1, row, [unit(`text ${row} ${rng.next()}`)]));
      for (const { hash } of table.pending(8)) {
        vectors.set(row, made());
        table.keep([{ hash, vectors: [vectors.get(row)!] }]);
      }
    };
    const drop = (row: number): void => {
      store.transaction(() => void store.setSource(1, row, []));
      vectors.delete(row);
    };
    const expectSame = (): void => {
      const query = made();
      const wanted = [...vectors]
        .map(([row, { bytes }]) => ({ row, score: cosine(query.bytes, bytes) }))
        .sort((a, b) => b.score - a.score)
        .slice(0, 5);
      const found = store.units(table.search(query, 5, undefined).map(({ id }) => id)).map(({ row }) => row);
      expect(found.sort()).toEqual(wanted.map(({ row }) => row).sort());
    };
    for (let row = 1; row <= 400; row++) put(row);
    expectSame();
    for (let row = 1; row <= 40; row++) drop(row);
    for (let row = 20; row <= 60; row++) put(row);
    expectSame();
    for (let row = 100; row <= 300; row++) drop(row);
    expectSame();
    const failing = () =>
      store.transaction(() => {
        store.setSource(1, 50, []);
        throw new Error("the disk is full");
      });
    expect(failing).toThrow("the disk is full");
    expectSame();
    for (let row = 400; row <= 430; row++) put(row);
    expectSame();
    store.close();
    const again = openWith(scratch.path, 1);
    const query = vectors.get(55)!;
    const [best] = again.table.search(query, 1, undefined);
    expect(again.store.units([best!.id]).map(({ row }) => row)).toEqual([55]);
    again.store.close();
  });

  test("[SEARCH-3] vectors of texts that went while nobody searched vectors are gone, also after a write that failed", () => {
    using scratch = scratchDir("svc-signs");
    const rng = createRng(5);
    const first = openWith(scratch.path, 1);
    const keepPending = (table: VectorTable): void => {
      const vector = () => Float32Array.from({ length: DIMENSION }, () => rng.next() - 0.5);
      table.keep(table.pending(8).map(({ hash }) => ({ hash, vectors: [packVector(vector(), undefined)] })));
    };
    first.store.transaction(() => void first.store.setSource(1, 1, [unit("old")]));
    keepPending(first.table);
    first.store.close();

    const { store } = openIndexStore(join(scratch.path, "index.db"), { tokenise: () => NOTHING, fingerprint: "one" });
    const replace = (): void => void store.setSource(1, 1, [unit("new")]);
    expect(() =>
      store.transaction(() => {
        replace();
        throw new Error("the disk is full");
      }),
    ).toThrow("the disk is full");
    store.transaction(replace);
    store.close();

    // The new text has the number of the old one: a vector that stayed would be in its way.
    const again = openWith(scratch.path, 1);
    expect(again.table.pendingCount()).toBe(1);
    keepPending(again.table);
    expect(again.table.pendingCount()).toBe(0);
    again.store.close();
  });

  test("looks at those alone that may be found, however few they are", () => {
    using scratch = scratchDir("svc-signs");
    const rng = createRng(4);
    const { store, table } = openWith(scratch.path, 1);
    const made = () =>
      packVector(
        Float32Array.from({ length: DIMENSION }, () => rng.next() - 0.5),
        undefined,
      );
    store.transaction(() => {
      for (let row = 1; row <= 3_000; row++) store.setSource(1, row, [unit(`text ${row}`)]);
    });
    for (let pending = table.pending(500); pending.length > 0; pending = table.pending(500))
      table.keep(pending.map(({ hash }) => ({ hash, vectors: [made()] })));
    const some = Array.from({ length: 2_500 }, (_, i) => i + 1);
    const query = made();
    const all = table.search(query, 3_000, undefined).filter(({ id }) => id <= 2_500);
    const among = (ids: readonly number[]) => (of: readonly number[]) => of.filter((id) => ids.includes(id));
    const only = (ids: readonly number[]): UnitFilter => ({ count: () => ids.length, all: () => [...ids] });
    const quick = (ids: readonly number[]): UnitFilter => ({ ...only(ids), among: among(ids) });
    expect(table.search(query, 5, quick(some))).toEqual(all.slice(0, 5));
    expect(table.search(query, 5, only(some))).toEqual(all.slice(0, 5));
    expect(
      table
        .search(query, 5, only([7, 9]))
        .map(({ id }) => id)
        .sort(),
    ).toEqual([7, 9]);
    store.close();
  });
});

function cosine(a: Int8Array, b: Int8Array): number {
  const dot = (x: Int8Array, y: Int8Array) => x.reduce((sum, value, i) => sum + value * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}
