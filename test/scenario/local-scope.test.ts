/** Device-local fields: written without a change, never mixed with synced ones, kept over restarts. */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { JsonObject, WriteResult } from "../support/server/client.ts";
import {
  type Collection,
  content,
  createCollection,
  createObject,
  createSpace,
  openCollection,
  setFields,
} from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";

const FIELDS = [
  { key: "n", kind: "number", mutableBy: "any" },
  { key: "mark", kind: "string", scope: "local", mutableBy: "any" },
  { key: "count", kind: "number", scope: "local", mutableBy: "any" },
] as const;

let items: Collection;
const shared = useServer({}, async ({ client }) => {
  const space = await createSpace(client);
  items = await createCollection(client, space.id, { fields: [...FIELDS] });
  await items.modify([setFields("a", { n: 1 })]);
});
const local = (id: string, ...ops: JsonObject[]): Promise<WriteResult> =>
  items.modify([{ id, ops }], { scope: "local" });

describe("local writes", () => {
  rule("[DATA-7] the value is read back, changeId is empty, no other field moves", async () => {
    const before = (await items.find("a"))!;
    const result = await local("a", { type: "$set", path: "mark", value: "seen" });
    expect(result.changeId).toBe("");
    expect(result.recordIds).toEqual(["a"]);
    const after = (await items.find("a"))!;
    expect(content(after)).toEqual({ ...content(before)!, mark: "seen" });
  });

  rule("[DATA-7] all ops work: $inc, $unset", async () => {
    await local("a", { type: "$inc", path: "count", value: 2 });
    await local("a", { type: "$inc", path: "count", value: 3 });
    expect(await items.find("a")).toMatchObject({ count: 5 });
    await local("a", { type: "$unset", path: "count" });
    expect(await items.find("a")).not.toHaveProperty("count");
  });

  rule("[DATA-7] a write of which every op is rejected has no version", async () => {
    const result = await local("a", { type: "$set", path: "n", value: 99 });
    expect(result).toMatchObject({ versionId: "", changeId: "", rejections: [{ recordIndex: 0, opIndex: 0 }] });
  });

  rule("[DATA-7] an op on a field that is not local is a rejection; the rest applies", async () => {
    const result = await local(
      "a",
      { type: "$set", path: "n", value: 99 },
      { type: "$set", path: "mark", value: "kept" },
    );
    expect(result.rejections).toMatchObject([{ recordIndex: 0, recordId: "a", opIndex: 0 }]);
    expect(await items.find("a")).toMatchObject({ n: 1, mark: "kept" });
  });

  rule("[DATA-7] local fields can be filtered and sorted by", async () => {
    await items.modify([setFields("b", { n: 2 })]);
    await local("b", { type: "$set", path: "mark", value: "zz" });
    expect((await items.query({ filter: { mark: "zz" } })).records.map((row) => row.id)).toEqual(["b"]);
  });

  rule("[DATA-7] a synced write that touches a local field is refused whole: dataset.validation", async () => {
    const records = [setFields("c", { n: 3 }), { id: "a", ops: [{ type: "$set", path: "mark", value: "synced" }] }];
    await shared.client.fails("POST", `${items.path}/modify`, { ...items.target, records }, 400, "dataset.validation");
    expect(await items.find("c")).toBeUndefined();
  });

  for (const [what, body] of [
    ["upsert", { records: [{ id: "a", upsert: true, ops: [{ type: "$set", path: "mark", value: "x" }] }] }],
    ["an empty id", { records: [{ id: "", ops: [{ type: "$set", path: "mark", value: "x" }] }] }],
    ["traceIds", { records: [{ id: "a", ops: [{ type: "$set", path: "mark", value: "x" }] }], traceIds: ["t"] }],
  ] as const) {
    rule(`[DATA-7] ${what} is 400 request.schema`, async () => {
      const request = { ...items.target, ...body, scope: "local" };
      await shared.client.fails("POST", `${items.path}/modify`, request, 400, "request.schema");
    });
  }

  rule("[DATA-7] the objects collection takes no local modify", async () => {
    const object = await createObject(shared.client, items.spaceId);
    const body = {
      objectId: object.id,
      dataset: "objects",
      scope: "local",
      records: [{ id: object.id, ops: [{ type: "$set", path: "svc.name", value: "x" }] }],
    };
    await shared.client.fails("POST", `${items.path}/modify`, body, 400, "request.schema");
  });

  rule("[DATA-7] local values survive a restart", async () => {
    await using first = await startServer();
    const space = await createSpace(first.client);
    const kept = await createCollection(first.client, space.id, { fields: [...FIELDS] });
    await kept.modify([setFields("a", { n: 1 })]);
    await kept.modify([{ id: "a", ops: [{ type: "$set", path: "mark", value: "stays" }] }], { scope: "local" });
    await first.stop();
    await using second = await startServer({ dataDir: first.dataDir });
    expect(await openCollection(second.client, kept).find("a")).toMatchObject({ n: 1, mark: "stays" });
  });
});
