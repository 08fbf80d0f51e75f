/**
 * The index alone at scale, by hand: `bun test/bench/search-scale.ts <chunks> [directory]`. Texts are stretches of the READMEs
 * below node_modules; vectors are mixed from those that the English model makes of 600 of them, a little off each, so that they
 * lie as the model's do. Prints the rate of indexing against raw FTS5 inserts of the same texts, the time of searches, memory
 * and the size on the disk. In a directory that holds an index already searches alone are measured. Rates are of processor
 * time, which other work on the machine disturbs less.
 */
import { Database } from "bun:sqlite";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { indexTokens, tokensFingerprint } from "../../src/search/index/index-tokens.ts";
import { packVector } from "../../src/search/model/packed-vector.ts";
import { loadTextEmbedder } from "../../src/search/model/text-embedder.ts";
import { fuseRanks } from "../../src/search/text/rank-fusion.ts";
import { parseSearch, searchText, unitsToSearch } from "../../src/search/text/text-search.ts";
import { openIndexStore } from "../../src/store/search/index-store.ts";
import { openVectorTable, type UnitFilter } from "../../src/store/search/vector-table.ts";
import { ENGLISH_MODEL, modelDirectory } from "../support/models/models.ts";
import { createRng } from "../support/rng.ts";
import { scratchDir } from "../support/scratch.ts";

const CHUNKS = Number(process.argv[2] ?? 100_000);
const SEARCHES = 100;
const WORDS_A_CHUNK = 120;
/** About what the index commits at once. */
const A_TRANSACTION = 300;
/** Those that are compared; before them the code is warmed up. */
const COMPARED = [3_000, 23_000] as const;
const EMBEDDED = 600;

const rng = createRng(7);
const words = readWords();
const chunk = (): string => {
  const from = Math.floor(rng.next() * (words.length - WORDS_A_CHUNK));
  return `${words.slice(from, from + WORDS_A_CHUNK).join(" ")} n${Math.floor(rng.next() * CHUNKS)}`;
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
const directory = process.argv[3] ?? scratch.path;
const path = join(directory, "index.db");
const isNew = !existsSync(path);

const embedder = await loadTextEmbedder({
  modelsDir: join(modelDirectory(ENGLISH_MODEL), "../.."),
  model: ENGLISH_MODEL,
  threads: 2,
});
const pool = (await embedder.embed(Array.from({ length: EMBEDDED }, chunk), "passage")).map(([first]) => first!);
const vector = () => {
  const [a, b] = [rng.pick(pool), rng.pick(pool)];
  const share = 0.6 + 0.4 * rng.next();
  const mixed = a.map((value, i) => share * value + (1 - share) * b[i]! + (rng.next() - 0.5) * 0.06);
  return packVector(mixed, embedder.center);
};

const { store } = openIndexStore(path, { tokenise: indexTokens, fingerprint: tokensFingerprint() });
if (isNew) fillWords();
const opened = openVectorTable(store, { id: "mixed", dimension: embedder.dimension }, scratch.path);
if (!("table" in opened)) throw new Error(opened.reason);
const { table } = opened;
if (isNew) fillVectors();
console.log(`${(statSync(path).size / 1e6).toFixed(0)} MB on disk for ${store.count()} chunks`);

const queries = Array.from({ length: SEARCHES }, () => {
  const from = Math.floor(rng.next() * (words.length - 4));
  return words.slice(from, from + 4).join(" ");
});
const parsed = (query: string) => parseSearch(query, {});
const rare = (query: string) => parseSearch(query, { scopes: ["rare"] });
const most = (query: string) => parseSearch(query, { scopes: ["basic"] });
const near = (filter?: UnitFilter) => table.search(vector(), 50, filter);
timed("the first search by meaning", () => near(), 1);
timed("fts", (query) => searchText(store, parsed(query), 50));
timed("vector", () => near());
timed("hybrid", (query) => fuseRanks(searchText(store, parsed(query), 50), near()));
timed("hybrid in a scope of 0.1 %", (query) =>
  fuseRanks(searchText(store, rare(query), 50), near(unitsToSearch(store, rare(query)))),
);
timed("hybrid in a scope of 99.9 %", (query) =>
  fuseRanks(searchText(store, most(query), 50), near(unitsToSearch(store, most(query)))),
);
timed("one word that most have", () => searchText(store, parsed("the"), 50), 5);
console.log(
  `memory of the process that measures ${(process.memoryUsage.rss() / 1e6).toFixed(0)} MB${isNew ? ", texts to be indexed among it" : ""}`,
);
store.close();

function fillWords(): void {
  const raw = new Database(join(scratch.path, "raw.db"));
  raw.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE VIRTUAL TABLE ft USING fts5(text)");
  const rawInsert = raw.query("INSERT INTO ft(rowid, text) VALUES(?, ?)");
  let [ownMs, rawMs, compared] = [0, 0, 0];
  for (let at = 0; at < CHUNKS; at += A_TRANSACTION) {
    const texts = Array.from({ length: Math.min(A_TRANSACTION, CHUNKS - at) }, chunk);
    const put = () =>
      texts.forEach((text, i) => {
        const no = at + i;
        const scope = no % 1_000 === 0 ? "rare" : "basic";
        const unit = {
          object: `o${no % 1_000}`,
          dataset: "texts",
          record: `r${no}`,
          chunk: 0,
          scope,
          text,
          embed: true,
        };
        store.setSource(1, no + 1, [unit]);
      });
    const own = processorMs(() => store.transaction(put));
    if (at >= COMPARED[1]) continue;
    const floor = processorMs(() =>
      raw.transaction(() => texts.forEach((text, i) => void rawInsert.run(at + i + 1, text)))(),
    );
    if (at < COMPARED[0]) continue;
    rawMs += floor;
    ownMs += own;
    compared += texts.length;
  }
  const rate = (ms: number) => Math.round(compared / (ms / 1_000));
  console.log(
    `index ${rate(ownMs)} chunks/s of the processor, raw FTS5 ${rate(rawMs)}, ratio ${(rawMs / ownMs).toFixed(2)}`,
  );
}

function fillVectors(): void {
  let kept = 0;
  const ms = processorMs(() => {
    for (let pending = table.pending(1_000); pending.length > 0; pending = table.pending(1_000)) {
      table.keep(pending.map(({ hash }) => ({ hash, vectors: [vector()] })));
      kept += pending.length;
    }
  });
  store.emptyLog();
  console.log(`vectors ${Math.round(kept / (ms / 1_000))}/s of the processor`);
}

function processorMs(run: () => unknown): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

function timed(name: string, run: (query: string) => unknown, count = SEARCHES): void {
  const times = queries.slice(0, count).map((query) => {
    const startedAt = performance.now();
    const worked = processorMs(() => run(query));
    return { passed: performance.now() - startedAt, worked };
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
