/** Properties of types: how they are declared, patched leaf by leaf, and removed. */
import { describe, expect } from "bun:test";
import { rule } from "../support/rule.ts";
import type { JsonObject } from "../support/server/client.ts";
import { createType } from "../support/server/fixtures.ts";
import { runScenarios } from "../support/server/scenario.ts";
import { useTypedSpace } from "../support/worlds/typed-space.ts";

const { shared, spaceId, typeId, S, T, add, find, patch, holder, set, row } = useTypedSpace();

describe("adding", () => {
  rule("[TYPE-2] the whole of a definition reads back", async () => {
    const draft = {
      name: "State",
      description: "How far it is",
      xKey: "state",
      meta: { index: "none", pos: "1" },
      format: {
        type: "select",
        ui: "multiselect",
        options: { open: { name: "Open", color: "green", pos: "a", meta: { icon: "o" } }, done: {} },
        meta: { a: "b" },
      },
    };
    const made = await add(draft);
    expect(made).toEqual({ ...draft, kind: "string", scope: "synced", id: made.id, propId: made.id });
    expect(await find(made.id)).toEqual({ ...draft, kind: "string", scope: "synced", id: made.id });
    const shaped = await add({
      name: "Place",
      kind: "object",
      properties: { lat: { kind: "number" }, tags: { kind: "array", items: { kind: "string" } } },
      required: ["lat"],
    });
    expect(await find(shaped.id)).toMatchObject({ kind: "object", required: ["lat"] });
  });

  rule("[TYPE-2] a format implies its kind; a kind that does not go with it is property.format_invalid", async () => {
    for (const [format, kind] of [
      ["links", "array"],
      ["date", "datetime"],
      ["datetime", "datetime"],
      ["select", "string"],
      ["multiselect", "array"],
    ] as const)
      expect(await add({ name: format, format: { type: format } })).toMatchObject({ kind });
    expect(await add({ name: "Day", kind: "string", format: { type: "date" } })).toMatchObject({ kind: "string" });
  });

  rule("[TYPE-1] built-in types list theirs, and take none", async () => {
    const ids = async (typeId: string) =>
      (await shared.client.get<{ properties: JsonObject[] }>(`${S()}/types/${typeId}/properties`)).properties.map(
        ({ id, kind, scope }) => `${id} ${kind} ${scope}`,
      );
    expect(await ids("nav")).toEqual(["type number synced", "parentId string synced", "pos string synced"]);
    expect(await ids("chat")).toEqual([
      "unreadCount number local",
      "unreadMentions number local",
      "unreadReactionsCount number local",
      "notifyMode string account",
    ]);
    expect(await ids("editor")).toEqual([]);
    expect(await ids("svc")).toContain("tags array synced");
    expect(await ids("svc")).toContain("createdAt datetime derived");
    for (const [method, path, body] of [
      ["POST", "properties", { name: "x", kind: "string" }],
      ["PATCH", "properties/pos", { set: { name: "x" } }],
      ["DELETE", "properties/pos", undefined],
      ["POST", "datasets", { name: "x", fields: [] }],
      ["PATCH", "datasets/x", { set: { displayName: "x" } }],
      ["DELETE", "datasets/x", undefined],
      ["POST", "datasets/x/fields", { key: "a" }],
      ["DELETE", "datasets/x/fields/y", undefined],
    ] as const) {
      const error = await shared.client.fails(method, `${S()}/types/nav/${path}`, body, 400, "type.registered");
      expect(error.details).toEqual({ typeId: "nav" });
    }
  });

  const badDraft = (title: string, body: JsonObject, code: string, details?: JsonObject) => ({
    title: `[TYPE-2] ${title} is ${code}`,
    method: "POST",
    path: "{T}/properties",
    body,
    status: 400,
    code,
    ...(details ? { details } : {}),
  });
  runScenarios(
    () => ({ client: shared.client, vars: { T: T() } }),
    [
      badDraft("neither kind nor format", { name: "x" }, "request.missing_field", { field: "kind" }),
      badDraft("an unknown key", { name: "x", kind: "string", colour: 1 }, "request.unknown_field", {
        fields: ["colour"],
      }),
      badDraft("the reserved format tags", { name: "x", format: { type: "tags" } }, "property.format_invalid", {
        path: "format.type",
      }),
      badDraft("a format without type", { name: "x", format: { ui: "select" } }, "property.format_invalid"),
      badDraft(
        "links of kind string",
        { name: "x", kind: "string", format: { type: "links" } },
        "property.format_invalid",
      ),
      badDraft(
        "a ui of another family",
        { name: "x", format: { type: "links", ui: "select" } },
        "property.format_invalid",
        {
          path: "format.ui",
        },
      ),
      badDraft("a ui on a date", { name: "x", format: { type: "date", ui: "date" } }, "property.format_invalid"),
      badDraft("options on links", { name: "x", format: { type: "links", options: {} } }, "property.format_invalid"),
      badDraft(
        "an option that is no object",
        { name: "x", format: { type: "select", options: { a: "A" } } },
        "property.format_invalid",
        { path: "format.options.a" },
      ),
      badDraft(
        "a filter that does not parse",
        { name: "x", format: { type: "links", filter: { a: { $nope: 1 } } } },
        "property.format_invalid",
        { path: "format.filter" },
      ),
      badDraft(
        "a filter on a select",
        { name: "x", format: { type: "select", filter: {} } },
        "property.format_invalid",
      ),
      badDraft("an xKey outside its grammar", { name: "x", kind: "string", xKey: "a b" }, "request.invalid_field", {
        field: "xKey",
      }),
      badDraft("a meta key with a dot", { name: "x", kind: "string", meta: { "a.b": "x" } }, "request.invalid_field"),
      badDraft("a meta value that is no string", { name: "x", kind: "string", meta: { a: 1 } }, "request.schema"),
      badDraft("items of a string", { name: "x", kind: "string", items: { kind: "string" } }, "request.invalid_field", {
        field: "items",
      }),
      badDraft("items of an unknown kind", { name: "x", kind: "array", items: { kind: "money" } }, "request.schema"),
      badDraft("an unknown scope", { name: "x", kind: "string", scope: "shared" }, "request.schema", { path: "scope" }),
    ],
  );

  rule("[TYPE-2] property xKeys are unique within their type, when added and when changed", async () => {
    const first = await add({ name: "a", kind: "string", xKey: "only.one" });
    const draft = { name: "b", kind: "string", xKey: "only.one" };
    const error = await shared.client.fails("POST", `${T()}/properties`, draft, 409, "type.xkey_conflict");
    expect(error.details).toMatchObject({ xKey: "only.one", existingPropId: first.id });
    const second = await add({ name: "b", kind: "string", xKey: "another" });
    const body = { set: { xKey: "only.one" } };
    await shared.client.fails("PATCH", `${T()}/properties/${second.id}`, body, 409, "type.xkey_conflict");
    expect((await patch(first.id, { set: { xKey: "only.one" } })).status).toBe(204);
    const elsewhere = await createType(shared.client, spaceId());
    await add(draft, `${S()}/types/${elsewhere.typeId}`);
    expect((await patch(first.id, { unset: ["xKey"] })).status).toBe(204);
    expect((await patch(second.id, body)).status).toBe(204);
  });
});

describe("patching", () => {
  rule("[TYPE-2] leaves are set and removed one by one; options come and go", async () => {
    const prop = await add({ name: "State", format: { type: "select", options: { open: { name: "Open" } } } });
    const reply = await patch(prop.id, {
      set: {
        name: "Status",
        description: "d",
        "meta.icon": "flag",
        "format.ui": "select",
        "format.meta.a": "b",
        "format.options.open.color": "green",
        "format.options.done.name": "Done",
      },
    });
    expect(reply.status).toBe(204);
    expect(await find(prop.id)).toEqual({
      id: prop.id,
      name: "Status",
      description: "d",
      kind: "string",
      scope: "synced",
      meta: { icon: "flag" },
      format: {
        type: "select",
        ui: "select",
        meta: { a: "b" },
        options: { open: { name: "Open", color: "green" }, done: { name: "Done" } },
      },
    });
    await patch(prop.id, {
      unset: ["format.options.open", "meta", "description"],
      set: { "format.options.done.pos": "a" },
    });
    expect(await find(prop.id)).toEqual({
      id: prop.id,
      name: "Status",
      kind: "string",
      scope: "synced",
      format: { type: "select", ui: "select", meta: { a: "b" }, options: { done: { name: "Done", pos: "a" } } },
    });
  });

  rule("[TYPE-2] pinned parts never change; nothing of a refused patch is written", async () => {
    const prop = await add({ name: "Pinned", format: { type: "select" } });
    for (const path of ["kind", "scope", "items", "items.kind", "properties", "required", "format", "format.type"]) {
      for (const body of [{ set: { name: "changed", [path]: "x" } }, { set: { name: "changed" }, unset: [path] }]) {
        const url = `${T()}/properties/${prop.id}`;
        const error = await shared.client.fails("PATCH", url, body, 400, "property.immutable");
        expect(error.details).toEqual({ path });
      }
    }
    expect(await find(prop.id)).toMatchObject({ name: "Pinned" });
  });

  rule("[TYPE-2] patches that say nothing, contradict themselves or name what is not there", async () => {
    const plain = await add({ name: "Plain", kind: "string" });
    const url = `${T()}/properties/${plain.id}`;
    const { client } = shared;
    for (const body of [{}, { set: {} }, { unset: [] }, { set: {}, unset: [] }])
      await client.fails("PATCH", url, body, 400, "request.missing_field");
    await client.fails("PATCH", url, { set: { name: "x" }, unset: ["name"] }, 400, "request.invalid_field");
    for (const set of [
      { name: 5 },
      { nonsense: "x" },
      { "meta.a.b": "x" },
      { meta: { a: "b" } },
      { removed: "x" },
      { "": "x" },
    ])
      await client.fails("PATCH", url, { set }, 400, "request.invalid_field");
    await client.fails("PATCH", url, { unset: ["name"] }, 400, "request.invalid_field");
    const error = await client.fails("PATCH", url, { set: { "format.ui": "select" } }, 400, "property.format_invalid");
    expect(error.details).toMatchObject({ path: "format.ui", reason: expect.any(String) });
    await client.fails("PATCH", url, { renamed: true }, 400, "request.unknown_field");
    const links = await add({ name: "Links", format: { type: "links" } });
    const linksUrl = `${T()}/properties/${links.id}`;
    await client.fails(
      "PATCH",
      linksUrl,
      { set: { "format.filter": { a: { $nope: 1 } } } },
      400,
      "property.format_invalid",
    );
    expect((await patch(links.id, { set: { "format.filter": { "svc.types": "page" } } })).status).toBe(204);
    expect(await find(links.id)).toMatchObject({ format: { filter: { "svc.types": "page" } } });
    const missing = await client.fails("PATCH", `${T()}/properties/nope`, { set: { name: "x" } }, 404, "sdk.not_found");
    expect(missing.details).toMatchObject({ propId: "nope" });
    await client.fails("PATCH", `${S()}/types/nope/properties/x`, { set: { name: "x" } }, 404, "type.not_found");
  });

  rule("[TYPE-2] a removed property is gone from the list; its values stay, later ones are refused", async () => {
    const prop = await add({ name: "Gone", kind: "number", xKey: "gone" });
    const objectId = await holder();
    expect((await set(objectId, { [prop.id]: 5 })).status).toBe(200);
    await shared.client.del(`${T()}/properties/${prop.id}`);
    expect(await find(prop.id)).toBeUndefined();
    expect(await row(objectId)).toMatchObject({ [typeId()]: { [prop.id]: 5 } });
    const raw = (type_: string, value?: number) => ({
      objectId,
      dataset: "objects",
      records: [{ id: objectId, ops: [{ type: type_, path: `${typeId()}.${prop.id}`, value }] }],
    });
    await shared.client.fails("POST", `${S()}/modify`, raw("$set", 6), 400, "dataset.validation");
    const body = { patch: { [prop.id]: 6 } };
    const path = `${S()}/properties/${objectId}/set/${typeId()}`;
    await shared.client.fails("POST", path, body, 400, "property.not_found");
    await shared.client.fails("DELETE", `${T()}/properties/${prop.id}`, undefined, 404, "sdk.not_found");
    await shared.client.fails("PATCH", `${T()}/properties/${prop.id}`, { set: { name: "x" } }, 404, "sdk.not_found");
    await shared.client.post(`${S()}/modify`, raw("$unset")); // what is left of it may be cleaned up
    expect(await row(objectId)).not.toHaveProperty([typeId(), prop.id]);
    expect(await add({ name: "Again", kind: "string", xKey: "gone" })).toMatchObject({ xKey: "gone" });
  });
});
