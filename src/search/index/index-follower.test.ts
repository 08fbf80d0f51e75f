/** [SEARCH-3] An index that says of itself that it is whole lacks no row, whatever came while it was made. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { createRng, type Rng, runSeed } from "../../../test/support/rng.ts";
import { type ScratchDir, scratchDir } from "../../../test/support/scratch.ts";
import { cidFromDigest } from "../../crypto/cid.ts";
import { openSpaceStore, type SpaceStore } from "../../store/space-store.ts";
import type { SearchConfig } from "./search-config.ts";
import { openSpaceIndex, type SpaceIndex } from "./space-index.ts";

const OBJECT = new Uint8Array(32).fill(7);
const OBJECT_ID = cidFromDigest(OBJECT);
const DATASETS = ["notes", "tasks"] as const;
type Dataset = (typeof DATASETS)[number];
const NO_CHANGE = new Uint8Array();

const configOf = (...datasets: readonly Dataset[]): SearchConfig => ({
  properties: {},
  datasets: Object.fromEntries(datasets.map((name) => [name, { text: ["body"], scope: "basic" }])),
});

let scratch: ScratchDir;
let space: SpaceStore;
let index: SpaceIndex;

const openIndex = (): void => {
  index = openSpaceIndex({ spaceId: "one", source: join(scratch.path, "space.db"), index: indexPath() });
};
const indexPath = (): string => join(scratch.path, "index.db");

beforeEach(() => {
  scratch = scratchDir("svc-follower");
  space = openSpaceStore(join(scratch.path, "space.db"));
  space.db.query("INSERT INTO objects(no, id, derived, root, projection) VALUES(1, ?, 0, x'', 0)").run(OBJECT);
  const doc = JSON.stringify({ id: OBJECT_ID, svc: { types: [], name: "the object" } });
  space.rows.insert(0, OBJECT_ID, doc, 1, 1, NO_CHANGE, 1);
  openIndex();
});

afterEach(() => {
  index.close();
  space.close();
  scratch[Symbol.dispose]();
});

/** Makes a record say something, as a commit does; nothing: it is gone. */
function write(dataset: Dataset, id: string, body: string | undefined): void {
  const collection = space.rows.collectionId(1, space.datasetNo(dataset));
  const doc = body === undefined ? null : JSON.stringify({ id, body });
  const state = body === undefined ? 2 : 1;
  const known = space.rows.get(collection, id);
  if (known) space.rows.update(known, doc, state, 1, NO_CHANGE, 1);
  else space.rows.insert(collection, id, doc, state, 1, NO_CHANGE, 1);
  space.rowLog.writeNoted();
}

function find(query: string, config: SearchConfig): { ids: string[]; incomplete: boolean } {
  const { hits, incomplete } = index.search({ query, limit: 100, maxData: -1, mode: "fts" }, undefined, config);
  return { ids: hits.map((hit) => hit.recordId).sort(), incomplete };
}

describe("an index", () => {
  test("[SEARCH-3] that is whole has what was written after its dataset was declared and before it was first read", () => {
    const config = configOf("notes");
    for (let i = 0; i < 5; i++) write("notes", `early${i}`, "walrus");
    index.setConfig(config);
    for (let i = 0; i < 5; i++) write("notes", `late${i}`, "walrus");
    // The log a row at a time, then what was there before.
    for (let i = 0; i < 20; i++) index.step(0);
    while (index.step(1_000));
    const { ids, incomplete } = find("walrus", config);
    expect(incomplete).toBe(false);
    expect(ids).toEqual([
      "early0",
      "early1",
      "early2",
      "early3",
      "early4",
      "late0",
      "late1",
      "late2",
      "late3",
      "late4",
    ]);
  });

  test("[SEARCH-3] follows a row that is gone and one that was given its number, though both are in one batch", () => {
    const config = configOf("notes", "tasks");
    index.setConfig(config);
    write("notes", "gone", "walrus");
    while (index.step(1_000));
    const notes = space.rows.collectionId(1, space.datasetNo("notes"));
    const { no } = space.rows.get(notes, "gone")!;
    space.db.run("DELETE FROM rows WHERE no = ?", [no]);
    space.rowLog.note(no, notes);
    write("tasks", "new", "otter");
    expect(space.rows.get(space.rows.collectionId(1, space.datasetNo("tasks")), "new")?.no).toBe(no);
    while (index.step(1_000));
    expect([find("walrus", config), find("otter", config)]).toEqual([
      { ids: [], incomplete: false },
      { ids: ["new"], incomplete: false },
    ]);
  });

  test("[SEARCH-3] that cannot take over what is to be indexed says that it lacks something, and answers", () => {
    write("notes", "one", "walrus");
    while (index.step(10));
    const holder = lockOf(indexPath());
    try {
      expect(find("walrus", configOf("notes"))).toEqual({ ids: [], incomplete: true });
    } finally {
      holder.close();
    }
    while (index.step(10));
    // It is not forgotten: whoever asks next has it taken over.
    expect(find("walrus", configOf("notes")).ids).toEqual(["one"]);
    expect(find("walrus", configOf("notes"))).toEqual({ ids: ["one"], incomplete: false });
  });

  test("[SEARCH-3] that is whole lacks no row, holds none that is gone, while datasets are declared anew, indexes closed and rows written", () => {
    const rng = createRng(runSeed("index-follower"));
    let whole = 0;
    const texts = new Map<string, { dataset: Dataset; body: string }>();
    let config = configOf();
    for (let turn = 0; turn < 1_500; turn++) {
      if (rng.chance(0.6)) writeSome(rng, texts);
      else if (rng.chance(0.06)) config = configOf(...DATASETS.filter(() => rng.chance(0.6)));
      else if (rng.chance(0.02)) {
        index.close();
        openIndex();
      } else if (rng.chance(0.2)) index.setConfig(config);
      else if (rng.chance(0.7)) index.step(rng.pick([0, 0.3]));
      else if (rng.chance(0.3)) while (index.step(0.3) && rng.chance(0.95));
      else whole += expectTruth(config, texts) ? 1 : 0;
    }
    expect(whole).toBeGreaterThan(8);
  });
});

const WORDS = ["otter", "walrus", "lantern"];

function writeSome(rng: Rng, texts: Map<string, { dataset: Dataset; body: string }>): void {
  const dataset = rng.pick(DATASETS);
  const id = `${dataset}${rng.int(0, 60)}`;
  const body = rng.chance(0.25) ? undefined : `${rng.pick(WORDS)} ${rng.pick(WORDS)}`;
  if (body === undefined && !texts.has(id)) return;
  write(dataset, id, body);
  if (body === undefined) texts.delete(id);
  else texts.set(id, { dataset, body });
}

/** What is found is there; where nothing is said to be lacking, all of it is found. Answers whether nothing was. */
function expectTruth(config: SearchConfig, texts: ReadonlyMap<string, { dataset: Dataset; body: string }>): boolean {
  let isWhole = true;
  for (const word of WORDS) {
    const there = [...texts].filter(([, { dataset, body }]) => config.datasets[dataset] && body.includes(word));
    const wanted = there.map(([id]) => id).sort();
    const { ids, incomplete } = find(word, config);
    if (incomplete) isWhole = false;
    else expect(ids).toEqual(wanted);
  }
  return isWhole;
}

/** Another program that has the file locked. */
function lockOf(path: string): Database {
  const db = new Database(path);
  db.exec("BEGIN IMMEDIATE");
  return db;
}
