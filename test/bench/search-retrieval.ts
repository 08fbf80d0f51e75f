/**
 * Known-item retrieval on real text, by hand: `bun test/bench/search-retrieval.ts <organisation>/<model>`. Corpora: the README
 * of every package below node_modules, sought by its package's description; the sections of the CommonMark specification,
 * sought by their first sentence, which is taken out; sentences, sought by paraphrases in several languages. Prints MRR@10 and
 * recall@10 a mode, and of the sentences how often the right one is first and among the first three.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { SearchMode } from "../../src/protocol/search.ts";
import { fuseRanks } from "../../src/search/text/rank-fusion.ts";
import { ENGLISH_MODEL, placeModel } from "../support/models/models.ts";
import { search, searchUntil } from "../support/models/search.ts";
import type { Client } from "../support/server/client.ts";
import { createObject, createSpace, createType } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";
import { PARAPHRASES } from "./paraphrases.ts";

interface Item {
  readonly id: string;
  readonly query: string;
  readonly text: string;
}

const PROJECT = join(import.meta.dir, "../..");
const MODES: readonly SearchMode[] = ["fts", "vector", "hybrid"];
const DEPTH = 10;
const WEIGHTS = [1, 1.25, 1.5, 2, 3];
const MAX_TEXT = 60_000;

function readmes(): Item[] {
  const modules = join(PROJECT, "node_modules");
  const folders = readdirSync(modules).flatMap((name) =>
    name.startsWith("@") ? readdirSync(join(modules, name)).map((below) => `${name}/${below}`) : [name],
  );
  return folders.flatMap((folder) => {
    const place = join(modules, folder);
    const readme = ["README.md", "readme.md", "Readme.md"]
      .map((name) => join(place, name))
      .find((file) => existsSync(file));
    if (!readme || !existsSync(join(place, "package.json"))) return [];
    const { name, description } = JSON.parse(readFileSync(join(place, "package.json"), "utf8")) as Record<
      string,
      string
    >;
    if (!name || !description) return [];
    const text = readFileSync(readme, "utf8").slice(0, MAX_TEXT);
    return [{ id: name.replace(/[^A-Za-z0-9._-]/g, "_"), query: description, text }];
  });
}

function sections(): Item[] {
  const spec = readFileSync(join(PROJECT, "node_modules/commonmark-spec/spec.txt"), "utf8");
  return spec
    .split(/^#{1,3} /m)
    .slice(1)
    .flatMap((section, index) => {
      const [title = "", ...lines] = section.split("\n");
      const body = lines.join("\n").trim();
      const sentence = /^[A-Z][^.`]{40,400}\./.exec(body)?.[0];
      const rest = sentence ? body.slice(sentence.length) : "";
      return sentence && rest.length > 300
        ? [{ id: `s${index}`, query: sentence.replace(/\s+/g, " "), text: rest.slice(0, MAX_TEXT) }]
        : [{ id: `n${index}`, query: "", text: `${title}\n${body}`.slice(0, MAX_TEXT) }];
    });
}

const NAMES_ASKED = (items: readonly Item[]): Item[] =>
  items.map((item) => ({ ...item, query: item.id.replace(/^_+/, "").replaceAll("_", "/") }));
const NONSENSE = [
  "qwxz vbnmk",
  "flurbish gronk tessellate moonquake",
  "zzyzx 93847",
  "colourless green ideas sleep furiously",
];

async function fill(client: Client, items: readonly Item[]): Promise<string> {
  const space = (await createSpace(client)).id;
  const { typeId } = await createType(client, space);
  const draft = { name: "texts", idRule: "user", search: { text: "body" }, fields: [{ key: "body" }] };
  await client.post(`/v1/spaces/${space}/types/${typeId}/datasets`, draft, 201);
  const { id } = await createObject(client, space, { types: [typeId] });
  for (const item of items) {
    const records = [{ id: item.id, fields: { body: item.text } }];
    await client.post(`/v1/spaces/${space}/upsert`, { objectId: id, dataset: "texts", records }, 200);
  }
  await searchUntil(
    client,
    space,
    { query: "text" },
    (answer) => answer.vectorStatus === "used" && !answer.incomplete,
    3_600_000,
  );
  return space;
}

type Ranked = readonly string[];

async function listsOf(client: Client, space: string, items: readonly Item[], mode: SearchMode): Promise<Ranked[]> {
  const lists: Ranked[] = [];
  for (const item of items) {
    const { hits } = await search(client, space, { query: item.query.slice(0, 2_000), mode, limit: 60, maxData: 1 });
    lists.push(hits.map((hit) => `${hit.recordId} ${hit.chunk ?? 0}`));
  }
  return lists;
}

function scoreOf(lists: readonly Ranked[], items: readonly Item[]): string {
  const ranks = lists.map((list, index) => {
    const records = [...new Set(list.map((hit) => hit.split(" ")[0]))];
    return records.slice(0, DEPTH).indexOf(items[index]!.id) + 1;
  });
  const reciprocal = ranks.reduce((sum, rank) => sum + (rank > 0 ? 1 / rank : 0), 0);
  const recalled = ranks.filter((rank) => rank > 0).length;
  return `MRR@10 ${(reciprocal / items.length).toFixed(3)}  recall@10 ${(recalled / items.length).toFixed(3)}`;
}

/** What hybrid would give with other weights of full text; vectors weigh 1. */
function reweighed(fts: readonly Ranked[], vector: readonly Ranked[], weight: number): Ranked[] {
  const found = (list: Ranked, ids: Map<string, number>) =>
    list.map((hit, rank) => {
      if (!ids.has(hit)) ids.set(hit, ids.size);
      return { id: ids.get(hit)!, score: -rank };
    });
  return fts.map((list, index) => {
    const ids = new Map<string, number>();
    const fused = fuseRanks(found(list, ids), found(vector[index]!, ids), { fts: weight, vector: 1 });
    const names = [...ids.keys()];
    return fused.map(({ id }) => names[id]!);
  });
}

const model = process.argv[2] ?? ENGLISH_MODEL;
await using server = await startServer({ env: { SVC_INDEX_EMBEDDER: "auto" } });
placeModel(server.dataDir, model);
const packages = readmes();
const parts = sections();
/** The space that holds a corpus. */
const spaces = new Map<readonly Item[], string>();
for (const [name, corpus, asked] of [
  ["READMEs by description", packages, packages],
  ["READMEs by exact name", packages, NAMES_ASKED(packages)],
  ["sections by first sentence", parts, parts.filter(({ query }) => query !== "")],
] as const) {
  const space = spaces.get(corpus) ?? (await fill(server.client, corpus));
  spaces.set(corpus, space);
  const lists = new Map<SearchMode, Ranked[]>();
  for (const mode of MODES) {
    const found = await listsOf(server.client, space, asked, mode);
    lists.set(mode, found);
    console.log(model, "|", name, `(${asked.length} of ${corpus.length})`, "|", mode, "|", scoreOf(found, asked));
  }
  for (const weight of WEIGHTS)
    console.log(`  full text × ${weight}:`, scoreOf(reweighed(lists.get("fts")!, lists.get("vector")!, weight), asked));
  if (corpus === packages && asked === packages)
    for (const query of NONSENSE) {
      const counts = await Promise.all(
        MODES.map(async (mode) => {
          const { hits } = await search(server.client, space, { query, mode });
          return `${mode} ${hits.length} hits, best ${hits[0]?.score.toFixed(2) ?? "-"}`;
        }),
      );
      console.log("nonsense:", query, "|", counts.join(", "));
    }
}

const sentences = await fill(
  server.client,
  PARAPHRASES.map(({ text }, index) => ({ id: `p${index}`, query: "", text })),
);
for (const language of ["English", "German", "Spanish", "Chinese", "Japanese"] as const) {
  const asked = PARAPHRASES.map((each, index) => ({ id: `p${index}`, query: each.asked[language], text: "" }));
  const lists = await listsOf(server.client, sentences, asked, "hybrid");
  const ranks = lists.map((list, index) => list.indexOf(`p${index} 0`));
  const within = (count: number) => ranks.filter((rank) => rank >= 0 && rank < count).length;
  console.log(
    model,
    "| paraphrases in",
    language,
    "| first",
    within(1),
    "| among three",
    within(3),
    "of",
    ranks.length,
  );
}
