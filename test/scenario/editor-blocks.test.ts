/** Single blocks: what a new one may be, and what a patch and a deletion do (EDIT-1, EDIT-3). */
import { beforeEach, describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { ErrorBody, JsonObject, Page, SpaceInfo, WriteResult } from "../support/server/client.ts";
import { ABSENT, createObject, createSpace } from "../support/server/fixtures.ts";

let space: SpaceInfo;
let object: string;
let editor: string;
const shared = useServer({}, async ({ client }) => {
  space = await createSpace(client);
});
/** A document of its own for each test. */
beforeEach(async () => {
  object = (await createObject(shared.client, space.id)).id;
  editor = `/v1/spaces/${space.id}/objects/${object}/editor`;
});
const refusal = async (body: JsonObject): Promise<[number, string, unknown]> => {
  const reply = await shared.client.request("POST", `${editor}/blocks`, { body });
  const { error } = reply.json as unknown as { error: ErrorBody };
  return [reply.status, error.code, error.details?.["field"] ?? error.details?.["path"]];
};
const create = async (body: JsonObject): Promise<string> =>
  (await shared.client.post<WriteResult>(`${editor}/blocks`, body, 201)).recordIds[0]!;
const patch = (id: string, body: JsonObject): Promise<WriteResult> =>
  shared.client.patch<WriteResult>(`${editor}/blocks/${encodeURIComponent(id)}`, body, 200);
const put = async (content: string): Promise<string[]> =>
  (await shared.client.put<{ inserted: string[] }>(`${editor}/markdown`, { content }, 200)).inserted;
const markdown = async (): Promise<string> =>
  (await shared.client.get<{ content: string }>(`${editor}/markdown`)).content;
const blocks = async (filter: JsonObject = {}): Promise<Page["records"]> => {
  const body = { objectId: object, dataset: "editor_blocks", filter, sort: ["nav.pos"] };
  return (await shared.client.post<Page>(`/v1/spaces/${space.id}/query`, body)).records;
};

describe("a new block", () => {
  rule("[EDIT-1] type is required, 1 to 64 bytes; a place is not empty", async () => {
    expect(await refusal({})).toEqual([400, "request.missing_field", "type"]);
    expect(await refusal({ type: 5 })).toEqual([400, "request.schema", "type"]);
    expect(await refusal({ type: "" })).toEqual([400, "request.invalid_field", "type"]);
    expect(await refusal({ type: "é".repeat(33) })).toEqual([400, "request.invalid_field", "type"]);
    expect(await refusal({ type: "quote", nav: { pos: "" } })).toEqual([400, "request.invalid_field", "nav.pos"]);
    await create({ type: "é".repeat(32) });
  });

  rule("[EDIT-1] without a place it comes behind its parent's last child, and its object gets the type", async () => {
    const style = { level: 2, mine: { any: [1] } };
    const heading = await create({ type: "heading", style, text: "Title" });
    const under = await create({ type: "quote", text: "under", nav: { parentId: heading } });
    const next = await create({ type: "quote", text: "next", nav: { parentId: heading } });
    const last = await create({ type: "paragraph", text: "last" });
    expect((await blocks({ "nav.parentId": "" })).map(({ id }) => id)).toEqual([heading, last]);
    expect((await blocks({ "nav.parentId": heading })).map(({ id }) => id)).toEqual([under, next]);
    const [first] = await blocks({ id: heading });
    expect(first).toMatchObject({ type: "heading", style, text: "Title" });
    const rows = await shared.client.post<Page>(`/v1/spaces/${space.id}/objects/query`, { filter: { id: object } });
    expect((rows.records[0]!["svc"] as JsonObject)["types"]).toContain("editor");
  });

  rule("[EDIT-2] the document shows the blocks at the top alone, by their places", async () => {
    const last = await create({ type: "paragraph", text: "last", nav: { pos: "z" } });
    await create({ type: "paragraph", text: "first", nav: { pos: "b" } });
    await create({ type: "paragraph", text: "under", nav: { parentId: last } });
    expect(await markdown()).toBe("first\n\nlast");
  });
});

describe("a patch of a block", () => {
  rule("[EDIT-1] touches what it names: a whole style, or one leaf of it", async () => {
    const id = await create({ type: "heading", style: { level: 2, mine: true }, text: "Title" });
    await patch(id, { set: { "style.level": 3, text: "Other" } });
    expect((await blocks({ id }))[0]).toMatchObject({ style: { level: 3, mine: true }, text: "Other" });
    await patch(id, { set: { style: { level: 1 } }, unset: ["text"] });
    const [block] = await blocks({ id });
    expect(block!["style"]).toEqual({ level: 1 });
    expect(block).not.toHaveProperty("text");
  });

  rule("[EDIT-1] what would take type or place away is a rejection, and the rest applies", async () => {
    const id = await create({ type: "quote", text: "kept" });
    const [before] = await blocks({ id });
    const unset = ["type", "nav.parentId", "nav.pos"];
    const { rejections, recordIds } = await patch(id, { set: { text: "new" }, unset });
    expect([recordIds, rejections?.map(({ opIndex }) => opIndex)]).toEqual([[id], [1, 2, 3]]);
    const [after] = await blocks({ id });
    expect(after).toMatchObject({ type: "quote", text: "new", nav: before!["nav"]! });
  });

  rule("[EDIT-1] an empty one writes nothing", async () => {
    const id = await create({ type: "quote", text: "kept" });
    const before = await blocks();
    expect(await patch(id, {})).toMatchObject({ versionId: "", recordIds: [id] });
    expect(await blocks()).toEqual(before);
  });

  rule("[EDIT-3] makes a block canonical by what it says, not by where it stands", async () => {
    const [title, item] = await put("Title\n===\n\n* one\n");
    await patch(item!, { set: { "nav.pos": "0" } });
    expect(await markdown()).toBe("* one\nTitle\n===\n\n");
    await patch(item!, { set: { text: "# two" } });
    await patch(title!, { set: { "style.level": 2 } });
    expect(await markdown()).toBe("- # two\n\n## Title\n\n");
    await patch(item!, { set: { type: "paragraph" } });
    expect(await markdown()).toBe("\\# two\n\n## Title\n\n");
  });
});

rule("[DATA-6] [EDIT-1] a raw write of a block keeps to the same", async () => {
  const id = await create({ type: "quote", text: "kept" });
  const [before] = await blocks({ id });
  const modify = async (record: JsonObject): Promise<(number | undefined)[]> => {
    const body = { objectId: object, dataset: "editor_blocks", records: [record] };
    const { rejections = [] } = await shared.client.post<WriteResult>(`/v1/spaces/${space.id}/modify`, body);
    return rejections.map(({ opIndex }) => opIndex);
  };
  const place = { parentId: "", pos: "a" };
  for (const value of [
    { text: "no type", nav: place },
    { type: "", nav: place },
    { type: "quote", text: "no place" },
    { type: "quote", nav: { parentId: "", pos: "" } },
    { type: "quote", nav: place, more: 1 },
  ])
    expect(await modify({ id: "", upsert: true, ops: [{ type: "$set", path: "", value }] })).toHaveLength(1);
  for (const op of [
    { type: "$unset", path: "type" },
    { type: "$unset", path: "nav" },
    { type: "$set", path: "nav.parentId", value: 5 },
    { type: "$set", path: "type", value: "é".repeat(33) },
    { type: "$set", path: "text", value: {} },
    { type: "$set", path: "style", value: "bold" },
    { type: "$set", path: "more", value: 1 },
  ])
    expect([op, await modify({ id, ops: [op] })]).toEqual([op, [0]]);
  expect(await blocks()).toEqual([before!]);
});

describe("a block that is deleted", () => {
  rule("[EDIT-1] is gone for good, and its children stay", async () => {
    const parent = await create({ type: "quote", text: "parent" });
    const child = await create({ type: "quote", text: "child", nav: { parentId: parent } });
    const { recordIds } = await shared.client.del<WriteResult>(`${editor}/blocks/${encodeURIComponent(parent)}`, 200);
    expect([recordIds, (await blocks()).map(({ id }) => id)]).toEqual([[parent], [child]]);
    for (const [method, body] of [
      ["PATCH", { set: { text: "again" } }],
      ["DELETE", undefined],
    ] as const)
      await shared.client.fails(method, `${editor}/blocks/${encodeURIComponent(parent)}`, body, 404, "sdk.not_found");
    expect((await blocks()).map(({ id }) => id)).toEqual([child]);
  });

  rule("[EDIT-1] of an object that is not there there is none to make, patch or delete", async () => {
    const elsewhere = `/v1/spaces/${space.id}/objects/${ABSENT}/editor/blocks`;
    for (const [method, path, body] of [
      ["POST", elsewhere, { type: "quote" }],
      ["PATCH", `${elsewhere}/b`, { set: { text: "x" } }],
      ["DELETE", `${elsewhere}/b`, undefined],
    ] as const)
      await shared.client.fails(method, path, body, 404, "object.not_found");
  });
});
