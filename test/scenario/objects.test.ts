/** Objects: create with types, initial properties and nav stamps, query, subscribe, delete. */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import { type JsonObject, type Page, type Row, type SpaceInfo, until, untilAfter } from "../support/server/client.ts";
import {
  type CreatedType,
  createCollection,
  createObject,
  createSpace,
  createType,
  setFields,
  uniqueName,
} from "../support/server/fixtures.ts";
import { runScenarios } from "../support/server/scenario.ts";

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
let space: SpaceInfo;
let type: CreatedType;
let other: CreatedType;
let accountId: string;
const shared = useServer({}, async ({ client }) => {
  space = await createSpace(client);
  type = await createType(client, space.id);
  other = await createType(client, space.id);
  accountId = (await client.get<{ id: string }>("/v1/account")).id;
});
const context = () => ({
  client: shared.client,
  vars: { S: `/v1/spaces/${space.id}`, typeId: type.typeId, xKey: type.xKey, otherType: other.typeId },
});

async function rowOf(id: string, spaceId = space.id): Promise<Row | undefined> {
  const page = await shared.client.post<Page>(`/v1/spaces/${spaceId}/objects/query`, { filter: { id } });
  return page.records[0];
}
const navOf = (row: Row | undefined): JsonObject => (row?.["nav"] ?? {}) as JsonObject;
const typesOf = (row: Row | undefined): unknown => (row?.["svc"] as JsonObject | undefined)?.["types"];

describe("create", () => {
  rule("[OBJ-1] 201 with both names of the id, and the row has its derived fields", async () => {
    const made = await shared.client.post<JsonObject>(`/v1/spaces/${space.id}/objects`, {}, 201);
    expect(made["objectId"]).toBe(made["id"]);
    expect(made["versionId"]).toBeString();
    const row = await rowOf(made["id"] as string);
    expect(row).toMatchObject({ id: made["id"] as string, author: accountId, spaceId: space.id });
    for (const key of ["createdAt", "modifiedAt"]) expect((row![key] as JsonObject)["$date"]).toMatch(INSTANT);
    expect((row!["_ver"] as JsonObject)["id"]).toBeString();
    expect(row).not.toHaveProperty("_deletedAt");
  });

  rule("[API-1] an absent body creates too", async () => {
    await shared.client.post(`/v1/spaces/${space.id}/objects`, undefined, 201);
  });

  rule("[OBJ-3] type 1, parentId empty and a position after the folder's last are stamped", async () => {
    const fresh = await createSpace(shared.client);
    const made: Row[] = [];
    for (let i = 0; i < 5; i++) made.push((await rowOf((await createObject(shared.client, fresh.id)).id, fresh.id))!);
    for (const row of made) {
      expect(navOf(row)).toMatchObject({ type: 1, parentId: "" });
      expect(navOf(row)["pos"]).toBeString();
      expect(typesOf(row)).toEqual(expect.arrayContaining(["nav"]));
    }
    const positions = made.map((row) => navOf(row)["pos"] as string);
    expect([...positions].sort()).toEqual(positions);
    expect(new Set(positions).size).toBe(5);
  });

  rule("[OBJ-3] a given nav block overrides the stamps, each key by itself", async () => {
    const folder = await createObject(shared.client, space.id, { nav: { type: 2 } });
    expect(navOf(await rowOf(folder.id))).toMatchObject({ type: 2, parentId: "" });
    const inside = await createObject(shared.client, space.id, { nav: { parentId: folder.id } });
    expect(navOf(await rowOf(inside.id))).toMatchObject({ type: 1, parentId: folder.id, pos: expect.any(String) });
    const placed = await createObject(shared.client, space.id, { nav: { pos: "zzz-mine" } });
    expect(navOf(await rowOf(placed.id))["pos"]).toBe("zzz-mine");
  });

  rule("[OBJ-1] types by id and by key; svc and nav are bound to every object", async () => {
    const made = await createObject(shared.client, space.id, { types: [type.typeId, other.xKey] });
    const types = typesOf(await rowOf(made.id)) as string[];
    expect(types).toEqual(expect.arrayContaining([type.typeId, other.typeId, "nav"]));
    expect(new Set(types).size).toBe(types.length);
  });

  rule("[OBJ-1] initialProperties are stored under their namespaces", async () => {
    const prop = await shared.client.post<{ propId: string }>(
      `/v1/spaces/${space.id}/types/${type.typeId}/properties`,
      { name: "Weight", kind: "number" },
      201,
    );
    const made = await createObject(shared.client, space.id, {
      types: [type.typeId],
      initialProperties: {
        svc: { name: "Named", description: "d", tags: ["x", "y"] },
        [type.typeId]: { [prop.propId]: 4.5 },
      },
    });
    expect(await rowOf(made.id)).toMatchObject({
      svc: { name: "Named", description: "d", tags: ["x", "y"] },
      [type.typeId]: { [prop.propId]: 4.5 },
    });
  });

  rule("[OBJ-1] concurrent creates all get their own id and position", async () => {
    const fresh = await createSpace(shared.client);
    const made = await Promise.all(Array.from({ length: 20 }, () => createObject(shared.client, fresh.id)));
    expect(new Set(made.map((entry) => entry.id)).size).toBe(20);
    const page = await shared.client.post<Page>(`/v1/spaces/${fresh.id}/objects/query`, {
      filter: { id: { $in: made.map((entry) => entry.id) } },
    });
    expect(page.records).toHaveLength(20);
    expect(new Set(page.records.map((row) => navOf(row)["pos"])).size).toBe(20);
  });

  runScenarios(context, [
    {
      title: "[API-1] an unknown key is request.unknown_field",
      method: "POST",
      path: "{S}/objects",
      body: { name: "x" },
      status: 400,
      code: "request.unknown_field",
      details: { fields: ["name"] },
    },
    {
      title: "[API-1] types that are no array are request.schema",
      method: "POST",
      path: "{S}/objects",
      body: { types: "page" },
      status: 400,
      code: "request.schema",
    },
    {
      title: "[API-1] a type entry that is no string is request.schema",
      method: "POST",
      path: "{S}/objects",
      body: { types: [5] },
      status: 400,
      code: "request.schema",
    },
    {
      title: "[API-1] nav.type that is no number is request.schema",
      method: "POST",
      path: "{S}/objects",
      body: { nav: { type: "folder" } },
      status: 400,
      code: "request.schema",
    },
    {
      title: "[OBJ-3] a nav.type that is neither item nor folder is request.invalid_field",
      method: "POST",
      path: "{S}/objects",
      body: { nav: { type: 3 } },
      status: 400,
      code: "request.invalid_field",
      details: { field: "nav.type" },
    },
    {
      title: "[OBJ-1] [API-19] an unknown type is 400 type.not_found",
      method: "POST",
      path: "{S}/objects",
      body: { types: ["no-such-type"] },
      status: 400,
      code: "type.not_found",
    },
    {
      title: "[OBJ-1] a namespace that is no type is type.not_found",
      method: "POST",
      path: "{S}/objects",
      body: { initialProperties: { nonsense: { a: 1 } } },
      status: 400,
      code: "type.not_found",
    },
    {
      title: "[OBJ-1] a namespace of a type that the create does not bind is object.type_required",
      method: "POST",
      path: "{S}/objects",
      body: { types: ["{typeId}"], initialProperties: { "{otherType}": { a: 1 } } },
      status: 400,
      code: "object.type_required",
    },
    {
      title: "[OBJ-1] [API-19] an unknown property is property.not_found",
      method: "POST",
      path: "{S}/objects",
      body: { initialProperties: { svc: { nonsense: 1 } } },
      status: 400,
      code: "property.not_found",
    },
    {
      title: "[OBJ-1] empty types and absent ones are fine",
      method: "POST",
      path: "{S}/objects",
      body: { types: [] },
      status: 201,
    },
    {
      title: "[OBJ-1] a registered type can be bound",
      method: "POST",
      path: "{S}/objects",
      body: { types: ["page"] },
      status: 201,
    },
  ]);

  rule("[OBJ-1] a refused create leaves nothing behind", async () => {
    const fresh = await createSpace(shared.client);
    const path = `/v1/spaces/${fresh.id}/objects`;
    const count = async (): Promise<number> =>
      (await shared.client.post<Page>(`${path}/query`, { includeTotal: true })).total!;
    const before = await count();
    await shared.client.fails("POST", path, { types: ["no-such-type"] }, 400, "type.not_found");
    await shared.client.fails("POST", path, { initialProperties: { svc: { nonsense: 1 } } }, 400, "property.not_found");
    expect(await count()).toBe(before);
  });
});

describe("query", () => {
  rule("[QUERY-4] filter over svc.name and nav, sort, page, totals", async () => {
    const fresh = await createSpace(shared.client);
    for (const name of ["pear", "apple", "fig", "kiwi"]) {
      await createObject(shared.client, fresh.id, { initialProperties: { svc: { name } } });
    }
    const page = await shared.client.post<Page>(`/v1/spaces/${fresh.id}/objects/query`, {
      filter: { "svc.name": { $in: ["pear", "apple", "fig", "kiwi"] }, "nav.type": 1 },
      sort: ["svc.name"],
      limit: 2,
      offset: 1,
      includeTotal: true,
    });
    expect(page.records.map((row) => (row["svc"] as JsonObject)["name"])).toEqual(["fig", "kiwi"]);
    expect(page).toMatchObject({ total: 4, hasNext: true });
  });

  runScenarios(context, [
    {
      title: "[QUERY-7] objectId must be absent or empty",
      method: "POST",
      path: "{S}/objects/query",
      body: { objectId: "something" },
      status: 400,
      code: "request.invalid_field",
    },
    {
      title: "[QUERY-7] dataset must be absent or empty",
      method: "POST",
      path: "{S}/objects/query",
      body: { dataset: "objects" },
      status: 400,
      code: "request.invalid_field",
    },
    {
      title: "[QUERY-7] empty strings count as absent",
      method: "POST",
      path: "{S}/objects/query",
      body: { objectId: "", dataset: "" },
      status: 200,
    },
    {
      title: "[QUERY-5] an unknown id is an empty page, never a 404",
      method: "POST",
      path: "{S}/objects/query",
      body: { filter: { id: "bafyunknown" } },
      status: 200,
      match: { records: [] },
    },
  ]);
});

describe("delete", () => {
  rule("[OBJ-5] 204; the row and everything in the object are gone, for good", async () => {
    const items = await createCollection(shared.client, space.id);
    await items.modify([setFields("a", { n: 1 })]);
    await shared.client.del(`${items.path}/objects/${items.objectId}`);
    expect(await rowOf(items.objectId)).toBeUndefined();
    await shared.client.fails("POST", `${items.path}/query`, items.target, 404, "object.not_found");
    await shared.client.fails("DELETE", `${items.path}/objects/${items.objectId}`, undefined, 404, "sdk.not_found");
    const write = { ...items.target, records: [setFields("b", { n: 1 })] };
    await shared.client.fails("POST", `${items.path}/modify`, write, 404, "object.not_found");
  });

  rule("[OBJ-5] of deletions at once one deletes, the others find nothing", async () => {
    for (let round = 0; round < 10; round++) {
      const made = await createObject(shared.client, space.id);
      const path = `/v1/spaces/${space.id}/objects/${made.id}`;
      const others = Array.from({ length: 8 }, () => createObject(shared.client, space.id)); // keep the writer busy
      const replies = await Promise.all(Array.from({ length: 8 }, () => shared.client.request("DELETE", path)));
      expect(replies.map(({ status }) => status).sort()).toEqual([204, 404, 404, 404, 404, 404, 404, 404]);
      await Promise.all(others);
    }
  });

  rule("[OBJ-5] children are not cascaded", async () => {
    const folder = await createObject(shared.client, space.id, { nav: { type: 2 } });
    const child = await createObject(shared.client, space.id, { nav: { parentId: folder.id } });
    await shared.client.del(`/v1/spaces/${space.id}/objects/${folder.id}`);
    expect(navOf(await rowOf(child.id))["parentId"]).toBe(folder.id);
  });

  rule("[LIVE-2] a subscription on the object's dataset hears of the deletion", async () => {
    const items = await createCollection(shared.client, space.id);
    await items.modify([setFields("a", { n: 1 })]);
    await using stream = await shared.client.stream("POST", `${items.path}/query/subscribe`, {
      ...items.target,
      driftBudgetPercent: 100,
    });
    expect((await stream.snapshot()).records).toHaveLength(1);
    await shared.client.del(`${items.path}/objects/${items.objectId}`);
    const frame = await stream.next();
    expect(["changes", "closed"]).toContain(frame!.event);
    if (frame!.event === "changes") expect(JSON.stringify(frame!.data)).toContain('"deleted"');
  });

  runScenarios(context, [
    {
      title: "[OBJ-5] DELETE of an unknown object is 404 sdk.not_found",
      method: "DELETE",
      path: "{S}/objects/bafyunknown",
      status: 404,
      code: "sdk.not_found",
    },
    {
      title: "[API-4] DELETE of a serialized nil id is 400",
      method: "DELETE",
      path: "{S}/objects/undefined",
      status: 400,
      code: "object.id_required",
      details: { got: "undefined" },
    },
  ]);
});

describe("derived fields", () => {
  rule(
    "[OBJ-4] modifiedAt moves on every synced write to any dataset of the object; createdAt and author stay",
    async () => {
      const items = await createCollection(shared.client, space.id);
      const before = (await rowOf(items.objectId))!;
      const instant = (row: Row): string => (row["modifiedAt"] as JsonObject)["$date"] as string;
      await untilAfter(before["modifiedAt"]);
      await items.modify([setFields("a", { n: 1 })]);
      const after = (await rowOf(items.objectId))!;
      expect(instant(after) > instant(before)).toBe(true);
      expect([after["createdAt"], after["author"]]).toEqual([before["createdAt"], before["author"]]);
    },
  );

  rule("[OBJ-4] derived fields cannot be written by clients", async () => {
    const made = await createObject(shared.client, space.id);
    const before = await rowOf(made.id);
    for (const patch of [{ author: "me" }, { createdAt: { $date: "2020-01-01T00:00:00.000Z" } }, { spaceId: "x" }]) {
      const reply = await shared.client.request("POST", `/v1/spaces/${space.id}/properties/${made.id}/set/svc`, {
        body: { patch },
      });
      expect([patch, reply.status >= 400 && reply.status < 500]).toEqual([patch, true]);
    }
    const row = await rowOf(made.id);
    for (const key of ["author", "createdAt", "spaceId"]) expect(row![key]).toEqual(before![key]!);
  });

  rule("[OBJ-3] moving is setting nav.parentId and nav.pos", async () => {
    const folder = await createObject(shared.client, space.id, { nav: { type: 2 } });
    const made = await createObject(shared.client, space.id);
    await shared.client.post(`/v1/spaces/${space.id}/properties/${made.id}/set/nav`, {
      patch: { parentId: folder.id, pos: "m" },
    });
    await until(async () => navOf(await rowOf(made.id))["parentId"] === folder.id, "the move");
    expect(navOf(await rowOf(made.id))).toMatchObject({ type: 1, parentId: folder.id, pos: "m" });
  });
});

rule("[DATA-6] a type and the space's index hold no messages, no blocks and no rows of their own making", async () => {
  const refused = (path: string, body: JsonObject, method = "POST") =>
    shared.client.fails(method, `/v1/spaces/${space.id}${path}`, body, 400, "dataset.validation");
  const message = { type: "$set", path: "", value: { text: "x" } };
  const block = { type: "$set", path: "", value: { type: "paragraph", nav: { parentId: "", pos: "m" } } };
  for (const objectId of [space.spaceIndexObjectId!, type.typeId]) {
    await refused(`/objects/${objectId}/chat/messages`, { text: "x" });
    await refused(`/objects/${objectId}/editor/markdown`, { content: "x" }, "PUT");
    await refused(`/objects/${objectId}/editor/markdown/append`, { content: "x" });
    await refused(`/objects/${objectId}/editor/blocks`, { type: "paragraph" });
    const raw = (dataset: string, op: JsonObject) =>
      refused("/modify", { objectId, dataset, records: [{ id: "", upsert: true, ops: [op] }] });
    await raw("chat_messages", message);
    await raw("editor_blocks", block);
  }
  const objectId = space.spaceIndexObjectId!;
  const name = { type: "$set", path: "svc.name", value: "a row for the index" };
  const records = [{ id: objectId, upsert: true, ops: [name] }];
  await refused("/modify", { objectId, dataset: "objects", records });
  expect(await rowOf(objectId)).toBeUndefined();
  expect(typesOf(await rowOf(type.typeId))).toEqual(["__type__"]);
});

rule("[API-5] an id with reserved characters in the path is decoded once and found unknown, never a 5xx", async () => {
  for (const id of ["a%2Fb", "%E2%98%82", "a%00b", "..%2f..", encodeURIComponent(uniqueName("x").repeat(200))]) {
    const reply = await shared.client.request("GET", `/v1/spaces/${space.id}/properties/${id}`);
    expect([id, reply.status >= 400 && reply.status < 500]).toEqual([id, true]);
  }
});
