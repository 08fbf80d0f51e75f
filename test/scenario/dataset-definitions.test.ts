/** Dataset definitions: drafts and their faults, fields, listings, and records under declared rules. */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { JsonObject, WriteResult } from "../support/server/client.ts";
import { setFields, uniqueName } from "../support/server/fixtures.ts";
import { runScenarios } from "../support/server/scenario.ts";
import { createDeclaringType, type DeclaringType } from "../support/worlds/declaring-type.ts";

let type: DeclaringType;
const shared = useServer({}, async ({ client }) => {
  type = await createDeclaringType(client);
});

describe("fields that are written once", () => {
  const draft = (name: string): JsonObject => ({
    name,
    idRule: "user",
    fields: [
      { key: "left_out", kind: "string" },
      { key: "said", kind: "string", mutableBy: "never" },
      { key: "open", kind: "string", mutableBy: "any" },
      { key: "here", kind: "string", scope: "local" },
      { key: "by", stamp: "creator" },
    ],
  });

  rule("[TYPE-3] the replies to a declaration name them", async () => {
    const made = await shared.client.post<JsonObject>(type.definitions, draft(uniqueName("once")), 201);
    expect(made).toEqual({ datasetDefId: expect.any(String), writeOnceFields: ["left_out", "said"] });
    const def = `${type.definitions}/${made["datasetDefId"]}/fields`;
    expect(await shared.client.post<JsonObject>(def, { key: "a" }, 201)).toMatchObject({ writeOnce: true });
    expect(await shared.client.post<JsonObject>(def, { key: "b", mutableBy: "any" }, 201)).toMatchObject({
      writeOnce: false,
    });
  });

  rule("[TYPE-8] the refusal says how to change the declaration, and that works", async () => {
    const items = await type.declare({ fields: [{ key: "title", kind: "string" }] });
    await items.upsert([{ id: "r", fields: { title: "old" } }]);
    const change = async () => items.modify([{ id: "r", ops: [{ type: "$set", path: "title", value: "new" }] }]);
    const refused = await change();
    expect(refused.rejections?.[0]?.reason).toContain(
      "remove the field from its dataset and add it anew with mutableBy any",
    );
    const again = await items.upsert([{ id: "r", fields: { title: "new" } }]);
    expect(again.rejections?.[0]).toMatchObject({
      code: "upsert.immutable_field",
      reason: `title: ${refused.rejections?.[0]?.reason}`,
    });
    const [field] = await type.fieldsOf(items);
    await shared.client.request("DELETE", `${items.def}/fields/${field?.["id"]}`);
    await type.addField(items, { key: "title", kind: "string", mutableBy: "any" });
    expect((await change()).rejections).toBeUndefined();
    expect(await items.find("r")).toMatchObject({ title: "new" });
  });
});

describe("declaring", () => {
  rule("[TYPE-3] [TYPE-4] the whole of a definition reads back, and its JSON Schema says it all", async () => {
    const items = await type.declare({
      displayName: "Things",
      description: "What there is",
      idPattern: "[a-z]+",
      idMaxLen: 20,
      deleteBy: "author",
      skipHistory: true,
      search: { title: "title", text: ["title", "notes"], scope: "things" },
      fields: [
        { key: "title", name: "Title", description: "Short", kind: "string", required: true, mutableBy: "author" },
        { key: "notes", mutableBy: "any" },
        { key: "place", shape: { kind: "object", properties: { lat: { kind: "number" } }, required: ["lat"] } },
        { key: "days", kind: "array", shape: { kind: "array", items: { kind: "datetime" } }, mutableBy: "any" },
        { key: "seen", kind: "boolean", scope: "local" },
        { key: "by", stamp: "creator" },
        { key: "at", stamp: "createTime" },
        { key: "changed", stamp: "modifyTime" },
      ],
    } as never);
    const def = await type.definition(items.defId);
    expect(def).toEqual({
      id: items.defId,
      name: items.dataset,
      displayName: "Things",
      description: "What there is",
      idRule: "user",
      idPattern: "[a-z]+",
      idMaxLen: 20,
      deleteBy: "author",
      skipHistory: true,
      search: { title: "title", text: ["title", "notes"], scope: "things" },
      fields: expect.any(Array),
    });
    const fields = (await type.fieldsOf(items)).map(({ id: _id, ...field }) => field);
    expect(fields).toEqual([
      {
        key: "title",
        name: "Title",
        description: "Short",
        kind: "string",
        scope: "synced",
        required: true,
        mutableBy: "author",
      },
      { key: "notes", kind: "string", scope: "synced", mutableBy: "any" },
      {
        key: "place",
        kind: "object",
        shape: { kind: "object", properties: { lat: { kind: "number" } }, required: ["lat"] },
        scope: "synced",
        mutableBy: "never",
      },
      {
        key: "days",
        kind: "array",
        shape: { kind: "array", items: { kind: "datetime" } },
        scope: "synced",
        mutableBy: "any",
      },
      { key: "seen", kind: "boolean", scope: "local", mutableBy: "never" },
      { key: "by", kind: "string", scope: "derived", mutableBy: "never", stamp: "creator" },
      { key: "at", kind: "datetime", scope: "derived", mutableBy: "never", stamp: "createTime" },
      { key: "changed", kind: "datetime", scope: "derived", mutableBy: "never", stamp: "modifyTime" },
    ]);
    expect(await type.listing(items.dataset)).toEqual({
      name: items.dataset,
      typeId: type.typeId,
      schema: {
        type: "object",
        title: "Things",
        description: "What there is",
        properties: {
          title: {
            type: "string",
            title: "Title",
            description: "Short",
            "x-scope": "synced",
            "x-mutable-by": "author",
          },
          notes: { type: "string", "x-scope": "synced", "x-mutable-by": "any" },
          place: { type: "object", properties: { lat: { type: "number" } }, required: ["lat"], "x-scope": "synced" },
          days: {
            type: "array",
            items: expect.objectContaining({ type: "object" }),
            "x-scope": "synced",
            "x-mutable-by": "any",
          },
          seen: { type: "boolean", "x-scope": "local" },
          by: { type: "string", "x-scope": "derived", "x-stamp": "creator" },
          at: expect.objectContaining({ "x-scope": "derived", "x-stamp": "createTime" }),
          changed: expect.objectContaining({ "x-stamp": "modifyTime" }),
        },
        additionalProperties: false,
        required: ["title"],
        "x-delete-by": "author",
        "x-id": "user",
        "x-id-pattern": "[a-z]+",
        "x-id-max-length": 20,
        "x-search": { title: "title", text: ["title", "notes"], scope: "things" },
      },
    } as never);
  });

  rule("[TYPE-3] defaults: auto ids, anyone deletes, closed; a single search text reads back as a string", async () => {
    const { datasetDefId } = await shared.client.post<{ datasetDefId: string }>(
      type.definitions,
      { name: uniqueName("d"), fields: [{ key: "a" }], search: { text: ["a"] } },
      201,
    );
    expect(await type.definition(datasetDefId)).toMatchObject({
      idRule: "auto",
      deleteBy: "anyone",
      search: { text: "a" },
    });
  });

  const bad = (title: string, draft: JsonObject, code: string, details?: JsonObject) => ({
    title: `[TYPE-3] ${title} is ${code}`,
    method: "POST",
    path: "{D}",
    body: { name: "bad_draft", fields: [], ...draft },
    status: 400,
    code,
    ...(details ? { details } : {}),
  });
  const badField = (title: string, field: JsonObject, path: string) =>
    bad(title, { fields: [{ key: "a", ...field }] }, "dataset.decl_invalid", { path: `fields[0].${path}` });
  runScenarios(
    () => ({ client: shared.client, vars: { D: type.definitions } }),
    [
      bad("an unknown idRule", { idRule: "uuid" }, "dataset.decl_invalid", { path: "idRule" }),
      bad("an unknown deleteBy", { deleteBy: "nobody" }, "dataset.decl_invalid", { path: "deleteBy" }),
      bad("idMaxLen without idRule user", { idMaxLen: 5 }, "dataset.decl_invalid", { path: "idMaxLen" }),
      bad("idMaxLen 0", { idRule: "user", idMaxLen: 0 }, "dataset.decl_invalid", { path: "idMaxLen" }),
      bad("a pattern that is no RE2", { idRule: "user", idPattern: "(?=a)" }, "dataset.decl_invalid", {
        path: "idPattern",
      }),
      bad("a pattern that takes long", { idRule: "user", idPattern: "(.{0,31}){31}" }, "dataset.decl_invalid"),
      bad("a pattern that blows up", { idRule: "user", idPattern: "((a{1000}){1000})" }, "dataset.decl_invalid"),
      bad("a search scope that is no slug", { search: { scope: "No Slug" } }, "request.invalid_field", {
        field: "search.scope",
      }),
      bad("a search title that is no field", { search: { title: "nope" } }, "dataset.decl_invalid", {
        path: "search.title",
      }),
      bad("an empty search text", { search: { text: [] } }, "dataset.decl_invalid", { path: "search.text" }),
      bad("a repeated search text", { fields: [{ key: "a" }], search: { text: ["a", "a"] } }, "dataset.decl_invalid"),
      bad(
        "author fields without a creator stamp",
        { fields: [{ key: "a", mutableBy: "author" }] },
        "dataset.decl_invalid",
        {
          path: "fields.a.mutableBy",
        },
      ),
      badField("an unknown kind", { kind: "money" }, "kind"),
      badField("a shape of another kind", { kind: "string", shape: { kind: "number" } }, "kind"),
      badField("a malformed shape", { shape: { kind: "array", items: {} } }, "shape.items.kind"),
      badField("an unknown mutableBy", { mutableBy: "owner" }, "mutableBy"),
      badField("an unknown scope", { scope: "account" }, "scope"),
      badField("scope derived without a stamp", { scope: "derived" }, "scope"),
      badField("an unknown stamp", { stamp: "editor" }, "stamp"),
      badField("a stamp of another kind", { stamp: "creator", kind: "number" }, "kind"),
      badField("a required stamp", { stamp: "creator", required: true }, "required"),
      badField("a required local field", { scope: "local", required: true }, "required"),
      badField("a stamp that clients change", { stamp: "creator", mutableBy: "any" }, "mutableBy"),
      ...["id", "_x", "a.b", "", "*", "$set", "__proto__"].map((key) =>
        badField(`the key ${JSON.stringify(key)}`, { key }, "key"),
      ),
      bad("a field without key", { fields: [{ kind: "string" }] }, "request.schema", { path: "fields[0].key" }),
      bad("an unknown part of a field", { fields: [{ key: "a", index: true }] }, "request.schema"),
      bad("an unknown part of a draft", { version: 2 }, "request.unknown_field", { fields: ["version"] }),
      {
        title: "[API-1] fields are required",
        method: "POST",
        path: "{D}",
        body: { name: "bad_draft" },
        status: 400,
        code: "request.missing_field",
        details: { field: "fields" },
      },
    ],
  );

  rule("[TYPE-3] nothing of a refused draft is left", async () => {
    const { datasets } = await shared.client.get<{ datasets: JsonObject[] }>(type.definitions);
    expect(datasets.filter((each) => each["name"] === "bad_draft")).toEqual([]);
  });
});

describe("records under declared rules", () => {
  rule("[TYPE-3] stamped and local fields refuse the whole synced write, with where and why", async () => {
    const items = await type.declare({
      fields: [
        { key: "a", mutableBy: "any" },
        { key: "by", stamp: "creator" },
        { key: "here", scope: "local" },
      ],
    } as never);
    for (const key of ["by", "here"]) {
      const body = { ...items.target, records: [setFields("one", { a: "x", [key]: "y" })] };
      const error = await shared.client.fails("POST", `${items.path}/modify`, body, 400, "dataset.validation");
      expect(error.details).toMatchObject({ dataset: items.dataset, path: key, recordIndex: 0, opIndex: 0 });
    }
    expect(await items.find("one")).toBeUndefined();
  });

  rule("[TYPE-3] local values are held to their kind on this device", async () => {
    const items = await type.declare({
      fields: [{ key: "a" }, { key: "here", kind: "number", scope: "local" }],
    } as never);
    await items.modify([setFields("one", { a: "x" })]);
    const local = (value: unknown): Promise<WriteResult> =>
      items.modify([{ id: "one", ops: [{ type: "$set", path: "here", value: value as never }] }], { scope: "local" });
    expect((await local("text")).rejections).toHaveLength(1);
    expect(await local(5)).not.toHaveProperty("rejections");
    expect(await items.find("one")).toMatchObject({ here: 5 });
  });

  rule("[QUERY-6] a declared datetime of a dataset, nested or not, is compared with a $date only", async () => {
    const items = await type.declare({
      fields: [
        { key: "d", kind: "datetime", mutableBy: "any" },
        { key: "log", shape: { kind: "array", items: { kind: "object", properties: { at: { kind: "datetime" } } } } },
        { key: "s" },
      ],
    } as never);
    await items.modify([setFields("one", { d: { $date: 0 } })]);
    for (const path of ["d", "log.at", "log.0.at"]) {
      const body = { ...items.target, filter: { [path]: { $lt: "2026-01-31" } } };
      const error = await shared.client.fails("POST", `${items.path}/query`, body, 400, "filter.invalid");
      expect(error.message).toContain("$date");
    }
    expect((await items.query({ filter: { d: { $lt: { $date: 5 } }, s: { $ne: "x" } } })).records).toHaveLength(1);
  });

  rule("[TYPE-4] the listings name the built-in datasets with their scopes, and the account's own", async () => {
    const { datasets } = await shared.client.get<{ datasets: { name: string; schema: JsonObject; typeId?: string }[] }>(
      `${type.base}/datasets`,
    );
    const built = new Map(datasets.map((each) => [each.name, each]));
    expect(built.get("chat_messages")).toMatchObject({
      typeId: "chat",
      schema: {
        additionalProperties: false,
        "x-delete-by": "author",
        properties: {
          unread: { "x-scope": "local" },
          creator: { "x-scope": "derived" },
          text: { "x-scope": "synced" },
        },
      },
    });
    expect(built.get("editor_blocks")).toMatchObject({ typeId: "editor", schema: { required: ["type", "nav"] } });
    expect(built.get("objects")).not.toHaveProperty("typeId");
    for (const { schema } of datasets) {
      expect(schema["type"]).toBe("object");
      for (const field of Object.values(schema["properties"] as Record<string, JsonObject>))
        expect(["synced", "derived", "local", "account"]).toContain(field["x-scope"] as string);
    }
    const own = await shared.client.get<{ datasets: { name: string; schema: JsonObject }[] }>("/v1/datasets");
    expect(own.datasets.map((each) => each.name)).toEqual(["spaces", "profile", "devices"]);
    expect(own.datasets[0]).not.toHaveProperty("typeId");
  });
});
