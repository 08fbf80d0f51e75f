/** Dataset definitions that are changed, removed and kept while there are records under them. */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { JsonObject } from "../support/server/client.ts";
import { content, openCollection, setFields, uniqueName } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";
import { createDeclaringType, type DeclaringType } from "../support/worlds/declaring-type.ts";

let type: DeclaringType;
const shared = useServer({}, async ({ client }) => {
  type = await createDeclaringType(client);
});

describe("changing a definition while data exists", () => {
  rule("[TYPE-8] a field added later can be written; records without it stay as they are", async () => {
    const items = await type.declare({ fields: [{ key: "a", kind: "string", mutableBy: "any" }] });
    await items.modify([setFields("one", { a: "x" })]);
    await type.addField(items, { key: "b", kind: "number", mutableBy: "any" });
    await items.modify([setFields("one", { b: 1 }), setFields("two", { a: "y", b: 2 })]);
    expect(content(await items.find("one"))).toEqual({ id: "one", a: "x", b: 1 });
    expect(content(await items.find("two"))).toEqual({ id: "two", a: "y", b: 2 });
    const error = await shared.client.fails(
      "POST",
      `${items.def}/fields`,
      { key: "c", required: true },
      400,
      "dataset.decl_invalid",
    );
    expect(error.details).toMatchObject({ path: "required" });
    for (const draft of [{ key: "a" }, { key: "id" }, { key: "d", mutableBy: "author" }])
      await shared.client.fails("POST", `${items.def}/fields`, draft, 400, "dataset.decl_invalid");
    await shared.client.fails("POST", `${items.def}/fields`, {}, 400, "request.missing_field");
    await shared.client.fails("POST", `${type.definitions}/nope/fields`, { key: "x" }, 404, "sdk.not_found");
  });

  rule("[TYPE-8] a removed field keeps its values and takes no more; its key may come back another kind", async () => {
    const items = await type.declare({
      fields: [
        { key: "a", kind: "string", mutableBy: "any" },
        { key: "b", kind: "string", mutableBy: "any" },
      ],
    });
    await items.modify([setFields("one", { a: "x", b: "y" })]);
    const field = (await type.fieldsOf(items)).find((each) => each["key"] === "b")!;
    await shared.client.del(`${items.def}/fields/${field["id"] as string}`);
    const result = await items.modify([setFields("one", { a: "z", b: "new" })]);
    expect(result.rejections).toMatchObject([{ recordIndex: 0, opIndex: 0, reason: expect.stringContaining("b") }]);
    expect(content(await items.find("one"))).toEqual({ id: "one", a: "z", b: "y" });
    await type.addField(items, { key: "b", kind: "number", mutableBy: "any" });
    await items.modify([setFields("one", { b: 5 })]);
    expect(content(await items.find("one"))).toEqual({ id: "one", a: "z", b: 5 });
    const gone = `${items.def}/fields/${field["id"] as string}`;
    const error = await shared.client.fails("DELETE", gone, undefined, 404, "sdk.not_found");
    expect(error.details).toMatchObject({ fieldId: field["id"]! });
  });

  rule("[TYPE-8] a field that the rest of the definition needs cannot be removed", async () => {
    const items = await type.declare({
      deleteBy: "author",
      search: { title: "t" },
      fields: [{ key: "t", mutableBy: "author" }, { key: "by", stamp: "creator" }, { key: "free" }],
    } as never);
    const idOf = async (key: string) =>
      (await type.fieldsOf(items)).find((each) => each["key"] === key)!["id"] as string;
    for (const key of ["t", "by"])
      await shared.client.fails(
        "DELETE",
        `${items.def}/fields/${await idOf(key)}`,
        undefined,
        400,
        "dataset.decl_invalid",
      );
    await shared.client.del(`${items.def}/fields/${await idOf("free")}`);
    expect((await type.fieldsOf(items)).map((field) => field["key"])).toEqual(["t", "by"]);
  });

  rule("[TYPE-8] display leaves are patched; everything else is dataset.immutable", async () => {
    const items = await type.declare({ fields: [{ key: "a" }, { key: "b" }] });
    const patch = (body: JsonObject) => shared.client.request("PATCH", items.def, { body });
    const set = {
      displayName: "D",
      description: "d",
      "search.title": "a",
      "search.text": ["a", "b"],
      "search.scope": "s",
    };
    expect((await patch({ set })).status).toBe(204);
    expect(await type.definition(items.defId)).toMatchObject({
      displayName: "D",
      description: "d",
      search: { title: "a", text: ["a", "b"], scope: "s" },
    });
    expect((await patch({ set: { "search.text": ["b"] }, unset: ["search.title", "description"] })).status).toBe(204);
    const changed = await type.definition(items.defId);
    expect(changed).toMatchObject({ displayName: "D", search: { text: "b", scope: "s" } });
    expect(changed).not.toHaveProperty("description");
    expect((await patch({ unset: ["search"] })).status).toBe(204);
    expect(await type.definition(items.defId)).not.toHaveProperty("search");
    for (const path of [
      "name",
      "idRule",
      "idPattern",
      "deleteBy",
      "dynamic",
      "skipHistory",
      "fields",
      "fields.a",
      "id",
      "search",
      "x",
    ]) {
      const error = await shared.client.fails("PATCH", items.def, { set: { [path]: "x" } }, 400, "dataset.immutable");
      expect(error.details).toEqual({ path });
    }
    const { client } = shared;
    await client.fails("PATCH", items.def, {}, 400, "request.missing_field");
    await client.fails("PATCH", items.def, { set: { displayName: 5 } }, 400, "request.invalid_field");
    await client.fails("PATCH", items.def, { set: { "search.scope": "No Slug" } }, 400, "request.invalid_field");
    await client.fails("PATCH", items.def, { set: { "search.title": "nope" } }, 400, "dataset.decl_invalid");
    await client.fails("PATCH", items.def, { set: { "search.text": [] } }, 400, "dataset.decl_invalid");
    const missing = await client.fails(
      "PATCH",
      `${type.definitions}/nope`,
      { set: { displayName: "x" } },
      404,
      "sdk.not_found",
    );
    expect(missing.details).toMatchObject({ defId: "nope" });
  });

  rule(
    "[TYPE-8] a removed definition keeps its records; writes are dataset.unknown; its name is free again",
    async () => {
      const items = await type.declare({ fields: [{ key: "a", mutableBy: "any" }] });
      await items.modify([setFields("one", { a: "x" })]);
      await shared.client.del(items.def);
      expect(content(await items.find("one"))).toEqual({ id: "one", a: "x" });
      const body = { ...items.target, records: [setFields("one", { a: "y" })] };
      await shared.client.fails("POST", `${items.path}/modify`, body, 400, "dataset.unknown");
      await shared.client.fails("DELETE", items.def, undefined, 404, "sdk.not_found");
      expect(await type.listing(items.dataset)).toBeUndefined();
      await shared.client.post(
        type.definitions,
        { name: items.dataset, idRule: "user", fields: [{ key: "n", kind: "number" }] },
        201,
      );
      await items.modify([setFields("two", { n: 1 })]);
      expect((await items.query({ sort: ["id"] })).records.map(content)).toEqual([
        { id: "one", a: "x" },
        { id: "two", n: 1 },
      ]);
    },
  );

  rule("[TYPE-3] declarations made at once under one name: one stands", async () => {
    const name = uniqueName("race");
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => shared.client.request("POST", type.definitions, { body: { name, fields: [] } })),
    );
    expect(replies.map((reply) => reply.status).toSorted()).toEqual([201, ...Array.from({ length: 7 }, () => 409)]);
  });
});

/** The last test: it stops the server of the others. */
rule("[TYPE-8] definitions and what was written under each of their versions survive a restart", async () => {
  const items = await type.declare({ fields: [{ key: "a", mutableBy: "any" }] });
  await items.modify([setFields("one", { a: "x" })]);
  await type.addField(items, { key: "b", kind: "number", mutableBy: "any" });
  await items.modify([setFields("two", { b: 1 })]);
  await shared.server.stop();
  await using second = await startServer({ dataDir: shared.server.dataDir });
  const again = openCollection(second.client, items);
  await again.modify([setFields("one", { b: 2 })]);
  expect((await again.query({ sort: ["id"] })).records.map(content)).toEqual([
    { id: "one", a: "x", b: 2 },
    { id: "two", b: 1 },
  ]);
});
