/**
 * The index alone at scale, by hand: `bun test/bench/search-scale.ts <chunks>`. Texts are drawn from the READMEs below
 * node_modules, vectors are random around a few hundred centres. Prints the rate of indexing against raw FTS5 inserts of the
 * same texts, the time of searches, and the size on the disk. Rates are of processor time, which other work on the machine
 * disturbs less.
 */
import { Database } from "bun:sqlite";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { CUT_FINGERPRINT, cutText } from "../../src/search/index-cut.ts";
import { packVector } from "../../src/search/packed-vector.ts";
import { fuseRanks } from "../../src/search/rank-fusion.ts";
import { parseSearch, searchText } from "../../src/search/text-search.ts";
import { openIndexStore } from "../../src/store/search/index-store.ts";
import { openVectorTable } from "../../src/store/search/vector-table.ts";
import { createRng } from "../support/rng.ts";
import { scratchDir } from "../support/scratch.ts";

const CHUNKS = Number(process.argv[2] ?? 100_000);
const DIMENSION = 384;
const CENTRES = 300;
const SEARCHES = 60;
const WORDS_A_CHUNK = 120;
const A_TRANSACTION = 500;

const rng = createRng(7);
const words = readWords();
const chunk = (): string => {
  const from = Math.floor(rng.next() * (words.length - WORDS_A_CHUNK));
  return `${words.slice(from, from + WORDS_A_CHUNK).join(" ")} n${Math.floor(rng.next() * CHUNKS)}`;
};
const centres = Array.from({ length: CENTRES }, () => Float32Array.from({ length: DIMENSION }, () => rng.next() - 0.5));
const vector = (): Float32Array => {
  const centre = centres[Math.floor(rng.next() * CENTRES)]!;
  return centre.map((value) => value + (rng.next() - 0.5) * 0.6);
};

function readWords(): string[] {
  const modules = join(import.meta.dir, "../../node_modules");
  const texts = readdirSync(modules).flatMap((name) => {
    try {
      return [readFileSync(join(modules, name, "README.md"), "utf8")];
    } catch {
      return []; // it has none
    }
  });
  return texts.join("\n").split(/\s+/);
}

using scratch = scratchDir("svc-search-scale");
const path = join(scratch.path, "index.db");
/** As many are compared; those beyond are made as they come. */
const MEASURED = Math.min(CHUNKS, 20_000);
const texts = Array.from({ length: MEASURED }, chunk);

const raw = new Database(join(scratch.path, "raw.db"));
raw.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE VIRTUAL TABLE ft USING fts5(text)");
const rawInsert = raw.query("INSERT INTO ft(rowid, text) VALUES(?, ?)");
const rawRate = rateOf(
  texts.length,
  (i) => rawInsert.run(i + 1, texts[i]!),
  (run) => raw.transaction(run)(),
);

const { store } = openIndexStore(path, { cut: cutText, fingerprint: CUT_FINGERPRINT });
const unitOf = (i: number, text: string) => ({
  object: `o${i % 1_000}`,
  dataset: "texts",
  record: `r${i}`,
  chunk: 0,
  scope: i % 1_000 === 0 ? "rare" : "basic",
  text,
  embed: true,
});
const putUnit = (i: number) => void store.setSource(1, i + 1, [unitOf(i, texts[i] ?? chunk())]);
const ownRate = rateOf(MEASURED, putUnit, store.transaction);
rateOf(CHUNKS - MEASURED, (i) => putUnit(MEASURED + i), store.transaction);
console.log(
  `index ${Math.round(ownRate)} chunks/s, raw FTS5 ${Math.round(rawRate)}, ratio ${(ownRate / rawRate).toFixed(2)}`,
);

const opened = openVectorTable(store, { id: "random", dimension: DIMENSION }, scratch.path);
if (!("table" in opened)) throw new Error(opened.reason);
const { table } = opened;
const vectorRate = (() => {
  const startedAt = performance.now();
  let kept = 0;
  for (let pending = table.pending(1_000); pending.length > 0; pending = table.pending(1_000)) {
    table.keep(pending.map(({ hash }) => ({ hash, vectors: [packVector(vector(), undefined)] })));
    kept += pending.length;
  }
  return kept / ((performance.now() - startedAt) / 1_000);
})();
store.settleFiles();
console.log(
  `vectors ${Math.round(vectorRate)}/s; ${(statSync(path).size / 1e6).toFixed(0)} MB on disk for ${CHUNKS} chunks`,
);

const queries = Array.from({ length: SEARCHES }, () => {
  const from = Math.floor(rng.next() * (words.length - 4));
  return words.slice(from, from + 4).join(" ");
});
const fts = (query: string) => searchText(store, parseSearch(query, {}), 50);
const near = (among?: number[]) => table.search(packVector(vector(), undefined), 50, among);
timed("fts", (query) => fts(query));
timed("vector", () => near());
timed("hybrid", (query) => fuseRanks(fts(query), near()));
timed("fts in a scope of 0.1 %", (query) => searchText(store, parseSearch(query, { scopes: ["rare"] }), 50));
console.log(`rss ${(process.memoryUsage.rss() / 1e6).toFixed(0)} MB`);
store.close();

function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function rateOf(count: number, put: (i: number) => unknown, transaction: (run: () => void) => unknown): number {
  const startedAt = processorMs();
  for (let at = 0; at < count; at += A_TRANSACTION)
    transaction(() => {
      for (let i = at; i < Math.min(count, at + A_TRANSACTION); i++) put(i);
    });
  return count / ((processorMs() - startedAt) / 1_000);
}

function timed(name: string, run: (query: string) => unknown): void {
  const times = queries.map((query) => {
    const startedAt = performance.now();
    const workedAt = processorMs();
    run(query);
    return { passed: performance.now() - startedAt, worked: processorMs() - workedAt };
  });
  const at = (share: number, of: "passed" | "worked") =>
    times
      .map((each) => each[of])
      .sort((a, b) => a - b)
      [Math.min(times.length - 1, Math.floor(times.length * share))]!.toFixed(1);
  console.log(
    `${name}: p50 ${at(0.5, "passed")} ms, p99 ${at(0.99, "passed")} ms; of the processor ${at(0.5, "worked")} and ${at(0.99, "worked")} ms`,
  );
}
