/**
 * What the first pass over bits loses, by hand: `bun test/bench/search-recall.ts <organisation>/<model> [texts]`. Short texts
 * from the READMEs and Markdown files below node_modules, embedded by a real model; for queries from the same texts the ten
 * nearest by int8 are sought among those that bits alone bring forward.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { prepareOrtBinding } from "../../src/search/model/ort-binding.ts";
import { packVector } from "../../src/search/model/packed-vector.ts";
import { loadTextEmbedder } from "../../src/search/model/text-embedder.ts";
import type { PackedVector } from "../../src/store/search/vector-table.ts";
import { ENGLISH_MODEL, modelDirectory } from "../support/models/models.ts";
import { createRng } from "../support/rng.ts";
import { scratchDir } from "../support/scratch.ts";

const model = process.argv[2] ?? ENGLISH_MODEL;
const TEXTS = Number(process.argv[3] ?? 6_000);
const QUERIES = 200;
const WANTED = 10;
const KEPT = [50, 60, 100, 128, 200, 256, 400];
const LEAST_CHARS = 60;
const MOST_CHARS = 300;

const rng = createRng(3);
const modules = join(import.meta.dir, "../../node_modules");
const paragraphs = readdirSync(modules, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".md"))
  .sort()
  .flatMap((path) => readFileSync(join(modules, path), "utf8").split(/\n\s*\n/))
  .map((text) => text.trim().slice(0, MOST_CHARS))
  .filter((text) => text.length >= LEAST_CHARS);
const texts = [...new Set(paragraphs)]
  .map((text) => ({ text, place: rng.next() }))
  .sort((a, b) => a.place - b.place)
  .slice(0, TEXTS)
  .map(({ text }) => text);

using scratch = scratchDir("svc-search-recall");
prepareOrtBinding(scratch.path);
const embedder = await loadTextEmbedder({ modelsDir: join(modelDirectory(model), "../.."), model, threads: 2 });
const pack = async (of: readonly string[], use: "query" | "passage"): Promise<PackedVector[]> =>
  (await embedder.embed(of, use)).map(([vector]) => packVector(vector!, embedder.center));
const startedAt = performance.now();
const kept = await pack(texts, "passage");
console.log(`${texts.length} texts, ${(texts.length / ((performance.now() - startedAt) / 1_000)).toFixed(0)} a second`);
// A sentence of a text rather than all of it: what is near is then more than the text itself.
const queries = await pack(
  texts.slice(0, QUERIES).map((text) => text.slice(0, 80)),
  "query",
);

for (const size of [texts.length / 4, texts.length / 2, texts.length].map(Math.floor)) {
  const among = kept.slice(0, size);
  const shares = KEPT.map((count) => {
    const found = queries.map((query) => {
      const exact = new Set(nearest(among, (each) => -dot(query.bytes, each.bytes) / norm(each.bytes), WANTED));
      const first = nearest(among, (each) => differing(query.bits, each.bits), count);
      return first.filter((index) => exact.has(index)).length / WANTED;
    });
    return `${count}: ${(found.reduce((sum, each) => sum + each, 0) / found.length).toFixed(3)}`;
  });
  console.log(`${model}, recall@${WANTED} among ${size} by candidates  ${shares.join("  ")}`);
}

function nearest(among: readonly PackedVector[], distance: (each: PackedVector) => number, count: number): number[] {
  return among
    .map((each, index) => ({ index, far: distance(each) }))
    .sort((a, b) => a.far - b.far)
    .slice(0, count)
    .map(({ index }) => index);
}

function dot(a: Int8Array, b: Int8Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

function norm(a: Int8Array): number {
  return Math.sqrt(dot(a, a));
}

function differing(a: Uint8Array, b: Uint8Array): number {
  let count = 0;
  for (let i = 0; i < a.length; i++) {
    let bits = a[i]! ^ b[i]!;
    for (; bits !== 0; bits &= bits - 1) count++;
  }
  return count;
}
