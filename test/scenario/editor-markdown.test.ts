/** The document as markdown: PUT, GET, PATCH and append, and what each refuses (EDIT-2, EDIT-5, EDIT-6, EDIT-9). */
import { describe, expect } from "bun:test";
import { LIMITS } from "../../src/protocol/limits.ts";
import { rule, useServer } from "../support/rule.ts";
import type { JsonObject, Page, SpaceInfo } from "../support/server/client.ts";
import { ABSENT, createObject, createSpace } from "../support/server/fixtures.ts";

interface MarkdownResult {
  inserted: string[];
  updated: string[];
  deleted: string[];
  unchanged: number;
}
interface Document {
  id: string;
  path: string;
  put(content: string): Promise<MarkdownResult>;
  read(): Promise<string>;
  patch(...edits: JsonObject[]): Promise<MarkdownResult>;
  append(content: string): Promise<MarkdownResult>;
  /** The blocks in their order. */
  blocks(): Promise<Page["records"]>;
}

let space: SpaceInfo;
const shared = useServer({}, async ({ client }) => {
  space = await createSpace(client);
});
const edit = (oldText: string, newText: string, more: JsonObject = {}): JsonObject => ({ oldText, newText, ...more });
const counts = ({ inserted, updated, deleted, unchanged }: MarkdownResult): number[] => [
  inserted.length,
  updated.length,
  deleted.length,
  unchanged,
];

/** A document of its own for each test. */
async function document(content?: string): Promise<Document> {
  const { client } = shared;
  const base = `/v1/spaces/${space.id}`;
  const { id } = await createObject(client, space.id);
  const path = `${base}/objects/${id}/editor/markdown`;
  const query = { objectId: id, dataset: "editor_blocks", sort: ["nav.pos"] };
  const made: Document = {
    id,
    path,
    put: (text) => client.put(path, { content: text }, 200),
    read: async () => (await client.get<{ content: string }>(path)).content,
    patch: (...edits) => client.patch(path, { edits }, 200),
    append: (text) => client.post(`${path}/append`, { content: text }),
    blocks: async () => (await client.post<Page>(`${base}/query`, query)).records,
  };
  if (content !== undefined) await made.put(content);
  return made;
}

const TEXTS: [string, string][] = [
  ["headings and paragraphs", "# One\n\ntext\nmore\n\n## Two ##\n\nend\n"],
  ["underlined headings", "One\n===\n\nTwo\n---\n"],
  ["lists", "- a\n- b\n  inner\n1. one\n2) two\n"],
  ["check lists", "- [ ] open\n- [x] done\n* [X] done\n"],
  ["code", "```ts\nlet a = 1;\n\n# none\n```\n"],
  ["unterminated code", "~~~\nleft open"],
  ["quotes", "> a\n>b\n>\n> c\n"],
  ["dividers", "a\n\n---\n\n* * *\n"],
  ["html and tables", "<div>\n</div>\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"],
  ["blank runs", "a\n\n\n\nb\n\n\n"],
  ["leading blank lines", "\n\na"],
  ["blanks at line ends", "a  \nb\t\n \n"],
  ["no line break at the end", "a"],
  ["text beyond the basic plane", "héllo 👩‍👩‍👧 \u{1F600}\n"],
];

describe("PUT and GET", () => {
  for (const [what, content] of TEXTS) {
    rule(`[EDIT-2] ${what}: the very bytes come back, and putting them again writes nothing`, async () => {
      const doc = await document(content);
      expect(await doc.read()).toBe(content);
      const blocks = await doc.blocks();
      expect(counts(await doc.put(content))).toEqual([0, 0, 0, blocks.length]);
      expect(await doc.blocks()).toEqual(blocks);
    });
  }

  rule("[EDIT-2] CRLF and LF are one: it is kept as LF and equals LF", async () => {
    const doc = await document("# a\r\n\r\nb\r\nc\r\n");
    expect(await doc.read()).toBe("# a\n\nb\nc\n");
    expect(counts(await doc.put("# a\n\nb\nc\n"))).toEqual([0, 0, 0, 2]);
    expect(counts(await doc.put("# a\r\n\r\nb\r\nc\r\n"))).toEqual([0, 0, 0, 2]);
  });

  rule("[EDIT-2] an object without blocks reads as the empty text", async () => {
    expect(await (await document()).read()).toBe("");
  });

  rule("[EDIT-1] the first block attaches the type; the blocks have type, style, text and place", async () => {
    const doc = await document("## Title\n\n- [x] done\n\n```ts\ncode\n```\n");
    const blocks = await doc.blocks();
    expect(blocks).toMatchObject([
      { type: "heading", style: { level: 2 }, text: "Title", nav: { parentId: "" } },
      { type: "check_list_item", style: { checked: true }, text: "done" },
      { type: "code", style: { lang: "ts" }, text: "code" },
    ]);
    const body = { filter: { id: doc.id } };
    const page = await shared.client.post<Page>(`/v1/spaces/${space.id}/objects/query`, body);
    expect((page.records[0]!["svc"] as JsonObject)["types"]).toContain("editor");
  });

  rule("[EDIT-5] what is unchanged keeps its id; what is new lands in its place", async () => {
    const doc = await document("a\n\nb\n\nc\n");
    const [a, b, c] = (await doc.blocks()).map(({ id }) => id);
    const result = await doc.put("a\n\nnew\n\nb\n\nc\n");
    expect(counts(result)).toEqual([1, 0, 0, 3]);
    expect((await doc.blocks()).map(({ id }) => id)).toEqual([a!, result.inserted[0]!, b!, c!]);
  });

  rule("[EDIT-5] an empty text deletes every block", async () => {
    const doc = await document("a\n\nb\n");
    const ids = (await doc.blocks()).map(({ id }) => id as string);
    expect((await doc.put("")).deleted.toSorted()).toEqual(ids.toSorted());
    expect([await doc.read(), await doc.blocks()]).toEqual(["", []]);
  });
});

interface EditCase {
  title: string;
  before: string;
  edits: JsonObject[];
  after: string;
}

const EDITS: EditCase[] = [
  { title: "a text inside a line", before: "hello world\n", edits: [edit("world", "you")], after: "hello you\n" },
  { title: "a text across blocks", before: "a\n\nb\n\nc\n", edits: [edit("a\n\nb", "d")], after: "d\n\nc\n" },
  {
    title: "replaceAll takes every occurrence",
    before: "x y x\n\nx\n",
    edits: [edit("x", "z", { replaceAll: true })],
    after: "z y z\n\nz\n",
  },
  {
    title: "every edit matches the original text",
    before: "a\n\nb\n",
    edits: [edit("a", "b"), edit("b", "a")],
    after: "b\n\na\n",
  },
  { title: "CRLF in an edit is folded", before: "a\nb\n", edits: [edit("a\r\nb", "c\r\nd")], after: "c\nd\n" },
  {
    title: "a whole line matches over curly quotes and dashes",
    before: "say “so” – it’s\n",
    edits: [edit('say "so" - it\'s', "done")],
    after: "done\n",
  },
  {
    title: "a whole line matches over blanks at its end",
    before: "a  \nb\n",
    edits: [edit("a\nb", "c")],
    after: "c\n",
  },
  { title: "a deleted block takes one separator", before: "a\n\nb\n\nc\n", edits: [edit("b", "")], after: "a\n\nc\n" },
  {
    title: "a deleted last block without a line break takes one",
    before: "a\n\nb",
    edits: [edit("b", "")],
    after: "a\n",
  },
  { title: "a no-op edit changes nothing", before: "a\n\nb\n", edits: [edit("a", "a")], after: "a\n\nb\n" },
];

describe("PATCH", () => {
  for (const { title, before, edits, after } of EDITS) {
    rule(`[EDIT-6] ${title}`, async () => {
      const doc = await document(before);
      await doc.patch(...edits);
      expect(await doc.read()).toBe(after);
    });
  }

  rule("[EDIT-6] a CR that stands before a line end stays where no edit touches it", async () => {
    const doc = await document("a\r\r\nb\r\n\nc\n");
    expect(await doc.read()).toBe("a\r\nb\n\nc\n");
    await doc.patch(edit("c", "d"));
    expect(await doc.read()).toBe("a\r\nb\n\nd\n");
  });

  rule("[EDIT-6] a no-op edit writes no block", async () => {
    const doc = await document("a\n\nb\n");
    const blocks = await doc.blocks();
    expect(counts(await doc.patch(edit("a", "a")))).toEqual([0, 0, 0, 2]);
    expect(await doc.blocks()).toEqual(blocks);
  });

  const refusals: [string, JsonObject[], string, JsonObject][] = [
    ["a text that is not there", [edit("only", "z"), edit("none", "x")], "markdown.no_match", { editIndex: 1 }],
    ["a line that differs by case", [edit("A B", "x")], "markdown.no_match", { editIndex: 0 }],
    ["a curly quote in mid-line", [edit("it's", "x")], "markdown.no_match", { editIndex: 0 }],
    ["a text that occurs three times", [edit("b", "x")], "markdown.ambiguous_match", { occurrences: 3 }],
    [
      "two edits of one stretch",
      [edit("only", "x"), edit("once", "y"), edit("only once", "z")],
      "markdown.overlapping_edits",
      { editIndices: [0, 2] },
    ],
    ["an empty oldText", [edit("", "x")], "request.invalid_field", { field: "edits[0].oldText" }],
    ["no edits", [], "request.invalid_field", { field: "edits" }],
  ];
  for (const [what, edits, code, details] of refusals) {
    rule(`[EDIT-6] ${what} is refused, and nothing is applied`, async () => {
      const content = "a b\n\nb and b\n\nonly once, said it’s so\n";
      const doc = await document(content);
      const error = await shared.client.fails("PATCH", doc.path, { edits }, 400, code);
      expect(error.details).toMatchObject(details);
      expect(await doc.read()).toBe(content);
    });
  }
});

describe("append", () => {
  rule("[EDIT-9] a fragment lands after the last block, without its outer blank lines", async () => {
    const doc = await document("a\n");
    const result = await doc.append("\n\n# b\n\nc\n\n");
    expect(counts(result).slice(0, 3)).toEqual([2, 0, 0]);
    const blocks = await doc.blocks();
    expect(blocks.map(({ type, text }) => [type, text] as unknown)).toEqual([
      ["paragraph", "a"],
      ["heading", "b"],
      ["paragraph", "c"],
    ]);
    expect(blocks.slice(1).map(({ id }) => id as string)).toEqual(result.inserted);
  });

  rule("[EDIT-9] a paragraph after a paragraph stays one of its own", async () => {
    const doc = await document("a");
    await doc.append("b");
    expect((await doc.blocks()).map(({ text }) => text as unknown)).toEqual(["a", "b"]);
    expect((await doc.read()).trimEnd()).toBe("a\n\nb");
  });

  rule("[EDIT-9] an append does not compare: the same fragment twice is there twice", async () => {
    const doc = await document();
    await doc.append("- a");
    expect((await doc.append("- a")).inserted).toHaveLength(1);
    expect(await doc.blocks()).toHaveLength(2);
  });

  for (const blank of ["", "\n", "  \n\t\r\n"]) {
    rule(`[EDIT-9] a blank fragment ${JSON.stringify(blank)} is no write`, async () => {
      const doc = await document("a\n");
      const result = await doc.append(blank);
      expect([result.inserted, result.updated, result.deleted]).toEqual([[], [], []]);
      expect(await doc.read()).toBe("a\n");
    });
  }
});

rule("[EDIT-7] a paragraph that one record has no room for goes on in others, by whatever route it comes", async () => {
  const long = "a".repeat(600_000);
  const ways: [string, (doc: Document) => Promise<MarkdownResult>, string][] = [
    ["PUT", (doc) => doc.put(long), long],
    ["PATCH", (doc) => doc.patch(edit("before", long)), `${long}\n`],
    ["append", (doc) => doc.append(`\n\n${long}`), `before\n\n${long}`],
  ];
  for (const [, write, content] of ways) {
    const doc = await document("before\n");
    await write(doc);
    expect((await doc.read()) === content).toBe(true);
    const blocks = await doc.blocks();
    const more = blocks.filter(({ type }) => type === "continuation");
    const block = blocks.find(({ id }) => id === (more[0]!["nav"] as JsonObject)["parentId"])!;
    expect(more.length).toBeGreaterThan(1);
    expect([block, ...more].map(({ text }) => text).join("")).toBe(long);
    expect(counts(await doc.put(content))).toEqual([0, 0, 0, blocks.length - more.length]);
  }
});

rule(
  "[EDIT-8] a request makes no more blocks than its bound, by whatever route; what is refused writes nothing",
  async () => {
    const limit = LIMITS.markdownBlocks;
    const doc = await document("first\n\nlast\n");
    // Two of them take the places of blocks that are there.
    const many = "a\n\n".repeat(limit + 3);
    for (const [method, tail, body] of [
      ["PUT", "", { content: many }],
      ["PUT", "", { content: "\n".repeat(1_000_000 / 2) }],
      ["PATCH", "", { edits: [edit("first", many)] }],
      ["POST", "/append", { content: many }],
    ] as const) {
      const { details, message } = await shared.client.fails(method, doc.path + tail, body, 413, "request.too_large");
      expect(details).toEqual({ limit });
      expect(message).toInclude("append the rest in parts");
    }
    expect(await doc.read()).toBe("first\n\nlast\n");
    const most = "a\n\n".repeat(limit);
    expect(counts(await doc.put(`first\n\nlast\n\n${most}`))[0]).toBe(limit);
    expect((await doc.append("one more")).inserted).toHaveLength(1);
    // What is there is kept, and goes, whatever its number.
    expect(counts(await doc.put(await doc.read()))).toEqual([0, 0, 0, limit + 3]);
    expect(counts(await doc.put("first\n"))).toEqual([0, 0, limit + 2, 1]);
  },
  60_000,
);

describe("refusals of every route", () => {
  const routes: [string, string, JsonObject | undefined][] = [
    ["GET", "", undefined],
    ["PUT", "", { content: "x" }],
    ["PATCH", "", { edits: [edit("a", "b")] }],
    ["POST", "/append", { content: "x" }],
  ];
  for (const [method, tail, body] of routes) {
    rule(`[EDIT-1] ${method} markdown${tail} of an unknown object is object.not_found`, async () => {
      const path = `/v1/spaces/${space.id}/objects/${ABSENT}/editor/markdown${tail}`;
      await shared.client.fails(method, path, body, 404, "object.not_found");
      const elsewhere = `/v1/spaces/${ABSENT}/objects/${ABSENT}/editor/markdown${tail}`;
      await shared.client.fails(method, elsewhere, body, 404, "space.not_found");
    });
    if (!body) continue;
    rule(`[API-1] ${method} markdown${tail} refuses a missing, a wrong and an unknown field`, async () => {
      const path = `${(await document()).path}${tail}`;
      const [field] = Object.keys(body);
      const missing = await shared.client.fails(method, path, {}, 400, "request.missing_field");
      expect(missing.details).toMatchObject({ field: field! });
      await shared.client.fails(method, path, { [field!]: 5 }, 400, "request.schema");
      await shared.client.fails(method, path, { ...body, more: 1 }, 400, "request.unknown_field");
    });
  }
});
