/** Properties of types: formats, patches leaf by leaf, options, removal, scopes, raw writes, backlinks, datetime filters. */
import { describe, expect } from "bun:test";
import type { JsonObject, Page, SpaceInfo, WriteResult } from "../support/client.ts";
import { type CreatedType, createObject, createSpace, createType } from "../support/fixtures.ts";
import { rule, useServer } from "../support/rule.ts";
import { runScenarios } from "../support/scenario.ts";

let space: SpaceInfo;
let type: CreatedType;
const shared = useServer({}, async ({ client }) => {
  space = await createSpace(client);
  type = await createType(client, space.id, "task");
});
const S = () => `/v1/spaces/${space.id}`;
const T = () => `${S()}/types/${type.typeId}`;

interface Property extends JsonObject {
  id: string;
  propId: string;
}
const add = (draft: JsonObject, path = T()): Promise<Property> =>
  shared.client.post<Property>(`${path}/properties`, draft, 201);
const find = async (propId: string, path = T()): Promise<JsonObject | undefined> => {
  const { properties } = await shared.client.get<{ properties: JsonObject[] }>(`${path}/properties`);
  return properties.find((property) => property["id"] === propId);
};
const patch = (propId: string, body: JsonObject) =>
  shared.client.request("PATCH", `${T()}/properties/${propId}`, { body });
const holder = async (): Promise<string> => (await createObject(shared.client, space.id, { types: [type.typeId] })).id;
const set = (objectId: string, values: JsonObject) =>
  shared.client.request("POST", `${S()}/properties/${objectId}/set/${type.typeId}`, { body: { patch: values } });
const row = async (objectId: string): Promise<JsonObject> =>
  (await shared.client.get<{ record: JsonObject }>(`${S()}/properties/${objectId}`)).record;

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

  rule("[TYPE-2] built-in types list theirs, and take none", async () => {
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

  rule("[type.xkey_conflict] property xKeys are unique within their type, when added and when changed", async () => {
    const first = await add({ name: "a", kind: "string", xKey: "only.one" });
    const draft = { name: "b", kind: "string", xKey: "only.one" };
    const error = await shared.client.fails("POST", `${T()}/properties`, draft, 409, "type.xkey_conflict");
    expect(error.details).toMatchObject({ xKey: "only.one", existingPropId: first.id });
    const second = await add({ name: "b", kind: "string", xKey: "another" });
    const body = { set: { xKey: "only.one" } };
    await shared.client.fails("PATCH", `${T()}/properties/${second.id}`, body, 409, "type.xkey_conflict");
    expect((await patch(first.id, { set: { xKey: "only.one" } })).status).toBe(204);
    const elsewhere = await createType(shared.client, space.id);
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

  rule("[property.immutable] pinned parts never change; nothing of a refused patch is written", async () => {
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
    expect(await row(objectId)).toMatchObject({ [type.typeId]: { [prop.id]: 5 } });
    const raw = (type_: string, value?: number) => ({
      objectId,
      dataset: "objects",
      records: [{ id: objectId, ops: [{ type: type_, path: `${type.typeId}.${prop.id}`, value }] }],
    });
    await shared.client.fails("POST", `${S()}/modify`, raw("$set", 6), 400, "dataset.validation");
    const body = { patch: { [prop.id]: 6 } };
    const path = `${S()}/properties/${objectId}/set/${type.typeId}`;
    await shared.client.fails("POST", path, body, 400, "property.not_found");
    await shared.client.fails("DELETE", `${T()}/properties/${prop.id}`, undefined, 404, "sdk.not_found");
    await shared.client.fails("PATCH", `${T()}/properties/${prop.id}`, { set: { name: "x" } }, 404, "sdk.not_found");
    await shared.client.post(`${S()}/modify`, raw("$unset")); // what is left of it may be cleaned up
    expect(await row(objectId)).not.toHaveProperty([type.typeId, prop.id]);
    expect(await add({ name: "Again", kind: "string", xKey: "gone" })).toMatchObject({ xKey: "gone" });
  });
});

describe("values", () => {
  rule("[property.format_violation] details name property, format and reason; nothing is written", async () => {
    const links = await add({ name: "Links", format: { type: "links" } });
    const day = await add({ name: "Day", format: { type: "date" } });
    const objectId = await holder();
    for (const [prop, format, value] of [
      [links, "links", ["nope"]],
      [day, "date", { $date: "2026-01-31T09:30:00Z" }],
    ] as const) {
      const reply = await set(objectId, { [day.id]: null, [prop.id]: value as never });
      expect(reply.status).toBe(400);
      expect(reply.json).toMatchObject({
        error: { code: "property.format_violation", details: { propId: prop.id, format, reason: expect.any(String) } },
      });
    }
    expect(await row(objectId)).not.toHaveProperty(type.typeId);
    const created = { types: [type.typeId], initialProperties: { [type.typeId]: { [links.id]: ["nope"] } } };
    await shared.client.fails("POST", `${S()}/objects`, created, 400, "property.format_violation");
  });

  rule(
    "[property.kind_mismatch] details name property, kind and reason; a raw write is held to the kind as well",
    async () => {
      const prop = await add({ name: "Count", kind: "number" });
      const list = await add({ name: "List", kind: "array", items: { kind: "string" } });
      const objectId = await holder();
      const reply = await set(objectId, { [prop.id]: "five" });
      expect(reply.json).toMatchObject({
        error: {
          code: "property.kind_mismatch",
          details: { propId: prop.id, kind: "number", reason: expect.any(String) },
        },
      });
      const raw = (ops: JsonObject[]) => ({ objectId, dataset: "objects", records: [{ id: objectId, ops }] });
      const at = (propId: string) => `${type.typeId}.${propId}`;
      for (const op of [
        { type: "$set", path: at(prop.id), value: "five" },
        { type: "$set", value: { [at(prop.id)]: "five" } },
        { type: "$inc", path: at(list.id), value: 1 },
        { type: "$addToSet", path: at(prop.id), value: 1 },
        { type: "$addToSet", path: at(list.id), value: 1 },
        { type: "$set", path: `${at(prop.id)}.x`, value: 1 },
        { type: "$set", path: "nav.type", value: "item" },
      ])
        await shared.client.fails("POST", `${S()}/modify`, raw([op]), 400, "property.kind_mismatch");
      await shared.client.post<WriteResult>(
        `${S()}/modify`,
        raw([
          { type: "$inc", path: at(prop.id), value: 2 },
          { type: "$addToSet", path: at(list.id), value: "x" },
        ]),
      );
      expect(await row(objectId)).toMatchObject({ [type.typeId]: { [prop.id]: 2, [list.id]: ["x"] } });
    },
  );

  rule("[TYPE-2] a raw synced write to what is not synced is dataset.validation", async () => {
    const local = await add({ name: "Here", kind: "string", scope: "local" });
    const objectId = await holder();
    for (const path of [`${type.typeId}.${local.id}`, "chat.unreadCount", "chat.notifyMode", "svc.types"]) {
      const body = {
        objectId,
        dataset: "objects",
        records: [{ id: objectId, ops: [{ type: "$set", path, value: "x" }] }],
      };
      await shared.client.fails("POST", `${S()}/modify`, body, 400, "dataset.validation");
    }
  });

  rule("[TYPE-2] raw values stand under types of the space that the object carries", async () => {
    const prop = await add({ name: "Raw", kind: "string" });
    const [carrying, bare] = [await holder(), (await createObject(shared.client, space.id)).id];
    const raw = (objectId: string, op: JsonObject) => ({
      objectId,
      dataset: "objects",
      records: [{ id: objectId, ops: [op] }],
    });
    const setOp = (path: string): JsonObject => ({ type: "$set", path, value: "x" });
    for (const op of [setOp("nowhere.x"), setOp("task.x"), { type: "$set", path: "", value: { "nowhere.x": 1 } }]) {
      const error = await shared.client.fails("POST", `${S()}/modify`, raw(carrying, op), 400, "type.not_found");
      expect(["nowhere", "task"]).toContain(error.details!["typeId"] as string);
    }
    for (const path of [`${type.typeId}.${prop.id}`, "spaceIndex.name", "type.xkey"]) {
      const error = await shared.client.fails(
        "POST",
        `${S()}/modify`,
        raw(bare, setOp(path)),
        400,
        "dataset.validation",
      );
      expect(error.details).toMatchObject({ dataset: "objects", path });
    }
    await shared.client.post<WriteResult>(`${S()}/modify`, raw(carrying, setOp(`${type.typeId}.${prop.id}`)));
    await shared.client.post<WriteResult>(`${S()}/modify`, raw(bare, setOp("svc.name")));
    expect(await row(carrying)).toMatchObject({ [type.typeId]: { [prop.id]: "x" } });
    expect(await row(bare)).toMatchObject({ svc: { name: "x" } });
    expect(await row(bare)).not.toHaveProperty("spaceIndex");
  });

  rule("[TYPE-2] chat.notifyMode is all, mentions or none", async () => {
    const chat = (await createObject(shared.client, space.id, { types: ["chat"] })).id;
    const path = `${S()}/properties/${chat}/set/chat`;
    const modeOf = async () => ((await row(chat))["chat"] as JsonObject | undefined)?.["notifyMode"];
    for (const notifyMode of ["loud", "", "ALL"]) {
      const error = await shared.client.fails("POST", path, { patch: { notifyMode } }, 400, "request.invalid_field");
      expect(error.details).toMatchObject({ field: "notifyMode" });
      const create = { types: ["chat"], initialProperties: { chat: { notifyMode } } };
      await shared.client.fails("POST", `${S()}/objects`, create, 400, "request.invalid_field");
    }
    for (const notifyMode of ["all", "mentions", "none"]) {
      await shared.client.post<WriteResult>(path, { patch: { notifyMode } });
      expect(await modeOf()).toBe(notifyMode);
    }
    await shared.client.post<WriteResult>(path, { patch: { notifyMode: null } });
    expect(await modeOf()).toBeUndefined();
  });

  rule("[API-7] instants come back in UTC with milliseconds, in whatever form they were given", async () => {
    const prop = await add({ name: "When", kind: "datetime" });
    for (const given of ["2026-01-31T10:30:00+01:00", Date.UTC(2026, 0, 31, 9, 30)]) {
      const objectId = await holder();
      await set(objectId, { [prop.id]: { $date: given } });
      expect(await row(objectId)).toMatchObject({
        [type.typeId]: { [prop.id]: { $date: "2026-01-31T09:30:00.000Z" } },
      });
    }
    const body = { filter: { [`${type.typeId}.${prop.id}`]: { $gte: { $date: "2026-01-31T09:30:00Z" } } } };
    expect((await shared.client.post<Page>(`${S()}/objects/query`, body)).records).toHaveLength(2);
  });

  rule("[QUERY-1] a declared datetime is compared with a $date only; the message says how", async () => {
    const prop = await add({ name: "Due", kind: "datetime" });
    const nested = await add({
      name: "Log",
      kind: "array",
      items: { kind: "object", properties: { at: { kind: "datetime" } } },
    });
    for (const path of [`${type.typeId}.${prop.id}`, `${type.typeId}.${nested.id}.at`, "createdAt", "modifiedAt"]) {
      for (const value of [5, "2026-01-31"]) {
        const body = { filter: { [path]: { $gt: value } } };
        const error = await shared.client.fails("POST", `${S()}/objects/query`, body, 400, "filter.invalid");
        expect(error.message).toContain("$date");
      }
    }
    const undeclared = { filter: { [`${type.typeId}.nope`]: { $gt: 5 }, "svc.name": "x" } };
    expect((await shared.client.post<Page>(`${S()}/objects/query`, undeclared)).records).toEqual([]);
  });
});

describe("objects and types", () => {
  rule("[TYPE-1] svc, spaceIndex and type are attached to no object; create names types by id or xKey", async () => {
    for (const name of ["svc", "spaceIndex", "type", "nope"]) {
      const error = await shared.client.fails("POST", `${S()}/objects`, { types: [name] }, 400, "type.not_found");
      expect(error.details).toEqual({ typeId: name });
    }
    const object = await createObject(shared.client, space.id, { types: ["task", "page"] });
    expect(await row(object.id)).toMatchObject({ svc: { types: [type.typeId, "page", "nav"] } });
  });

  rule("[sdk.not_implemented] types are attached and detached at create only", async () => {
    const objectId = await holder();
    for (const verb of ["attach", "detach"])
      await shared.client.fails(
        "POST",
        `${S()}/properties/${objectId}/${verb}/page`,
        undefined,
        501,
        "sdk.not_implemented",
      );
  });

  rule("[TYPE-1] a type's name is its object's: renaming it shows in the list", async () => {
    const made = await createType(shared.client, space.id);
    await shared.client.post(`${S()}/properties/${made.typeId}/set/svc`, {
      patch: { name: "Renamed", icon: "bafyicon" },
    });
    expect(await shared.client.get(`${S()}/types/${made.typeId}`)).toMatchObject({
      name: "Renamed",
      iconCid: "bafyicon",
    });
  });

  rule("[backlinks] one entry per object and property, of links properties of types still carried", async () => {
    const links = await add({ name: "Refs", format: { type: "links" } });
    const plain = await add({ name: "Not links", kind: "array" });
    const target = await holder();
    const [one, two] = [await holder(), await holder()];
    const url = `svc://${target}`;
    await set(one, { [links.id]: [url, url], [plain.id]: [url] });
    await set(two, { [links.id]: [`svc://${one}`, url] });
    const backlinks = async (id: string) =>
      (await shared.client.get<{ backlinks: JsonObject[] }>(`${S()}/objects/${id}/backlinks`)).backlinks;
    const entry = (objectId: string) => ({ objectId, typeId: type.typeId, propId: links.id });
    const sorted = [one, two].toSorted().map(entry);
    expect(await backlinks(target)).toEqual(sorted);
    expect(await backlinks(one)).toEqual([entry(two)]);
    expect(await backlinks("bafyunknown")).toEqual([]);
    await set(two, { [links.id]: [`svc://${one}`] });
    expect(await backlinks(target)).toEqual([entry(one)]);
    await shared.client.del(`${S()}/objects/${one}`);
    expect(await backlinks(target)).toEqual([]);
    await set(two, { [links.id]: [url] });
    expect(await backlinks(target)).toEqual([entry(two)]);
    await shared.client.del(`${T()}/properties/${links.id}`);
    expect(await backlinks(target)).toEqual([]);
  });
});

describe("values given when an object is created", () => {
  rule("[TYPE-2] each goes where its scope says: none of a private one is in the object's changes", async () => {
    const [synced, local, account] = await Promise.all([
      add({ name: "n", kind: "number" }),
      add({ name: "on this device", kind: "number", scope: "local" }),
      add({ name: "of this account", kind: "number", scope: "account" }),
    ]);
    const values = { [synced!.id]: 1, [local!.id]: 2, [account!.id]: 3 };
    const body = { types: [type.typeId], initialProperties: { task: values } };
    const { id } = await createObject(shared.client, space.id, body);
    expect((await row(id))[type.typeId]).toEqual(values);
    const { changes } = await shared.client.get<{ changes: JsonObject[] }>(`${S()}/objects/${id}/history`);
    const text = JSON.stringify(changes);
    expect([synced, local, account].map((property) => text.includes(property!.id))).toEqual([true, false, false]);
  });

  rule("[TYPE-2] a bundle's root is everybody's: private values are refused", async () => {
    const local = await add({ name: "on this device", kind: "number", scope: "local" });
    const answer = await shared.client.request("POST", `${S()}/bundles`, {
      body: { id: "private/v1", rootTypes: [type.typeId], rootProperties: { task: { [local.id]: 2 } } },
    });
    expect([answer.status, (answer.json as { error: JsonObject }).error["code"]]).toEqual([
      400,
      "request.invalid_field",
    ]);
  });
});

describe("what the server keeps", () => {
  rule("[chat] counters of a chat are not written, neither later nor when it is created", async () => {
    const { id } = await createObject(shared.client, space.id, { types: ["chat"] });
    const patch = { unreadCount: 9 };
    for (const [path, body] of [
      [`${S()}/properties/${id}/set/chat`, { patch }],
      [`${S()}/objects`, { types: ["chat"], initialProperties: { chat: patch } }],
    ] as const)
      await shared.client.fails("POST", path, body, 400, "request.invalid_field");
    expect((await row(id))["chat"]).toBeUndefined();
  });

  rule("[TYPE-1] a raw write gives no type another's xKey", async () => {
    const [first, second] = [await createType(shared.client, space.id), await createType(shared.client, space.id)];
    const ops = [{ type: "$set", path: "type.xkey", value: first.xKey }];
    const body = { objectId: second.id, dataset: "objects", records: [{ id: second.id, ops }] };
    await shared.client.fails("POST", `${S()}/modify`, body, 400, "dataset.validation");
    const read = await shared.client.get<CreatedType>(`${S()}/types/${second.id}`);
    expect(read.xKey).toBe(second.xKey);
  });
});
