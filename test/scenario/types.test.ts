/** Types, properties and dataset declarations: the basics a collection needs (the whole is the data plane's suite). */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { JsonObject, SpaceInfo } from "../support/server/client.ts";
import { untilAfter } from "../support/server/client.ts";
import {
  ANY_FIELDS,
  type CreatedType,
  createCollection,
  createSpace,
  createType,
  uniqueName,
} from "../support/server/fixtures.ts";
import { runScenarios } from "../support/server/scenario.ts";

let space: SpaceInfo;
let type: CreatedType;
const shared = useServer({}, async ({ client }) => {
  space = await createSpace(client);
  type = await createType(client, space.id, "books");
});
const context = () => ({
  client: shared.client,
  vars: { S: `/v1/spaces/${space.id}`, T: `/v1/spaces/${space.id}/types/${type.typeId}`, typeId: type.typeId },
});

describe("types", () => {
  rule("[TYPE-1] 201 TypeInfo with typeId, found by id and in the list after the built-ins", async () => {
    const made = await shared.client.post<JsonObject>(
      `/v1/spaces/${space.id}/types`,
      { xKey: "film", name: "Film", description: "moving", iconCid: "bafyicon" },
      201,
    );
    expect(made).toMatchObject({ xKey: "film", name: "Film", description: "moving", iconCid: "bafyicon" });
    expect(made["typeId"]).toBe(made["id"]);
    expect(await shared.client.get(`/v1/spaces/${space.id}/types/${made["id"] as string}`)).toMatchObject({
      id: made["id"] as string,
      xKey: "film",
    });
    const { types } = await shared.client.get<{ types: JsonObject[] }>(`/v1/spaces/${space.id}/types`);
    const ids = types.map((entry) => entry["id"]);
    expect(ids.slice(0, 3)).toEqual(["svc", "spaceIndex", "type"]);
    for (const registered of ["chat", "editor", "page", "nav"]) {
      expect(ids).toContain(registered);
      expect(ids.indexOf(registered)).toBeLessThan(ids.indexOf(made["id"]));
    }
    for (const entry of types.filter((candidate) => candidate["builtIn"])) expect(entry["xKey"]).toBe(entry["id"]!);
    expect(types.find((entry) => entry["id"] === made["id"])).not.toHaveProperty("builtIn", true);
  });

  runScenarios(context, [
    {
      title: "[TYPE-1] a create without xKey",
      method: "POST",
      path: "{S}/types",
      body: { name: "No key" },
      status: 400,
      code: "type.xkey_required",
    },
    {
      title: "[TYPE-1] an xKey already used: details name it and its holder",
      method: "POST",
      path: "{S}/types",
      body: { xKey: "books" },
      status: 409,
      code: "type.xkey_conflict",
      details: { xKey: "books", existingTypeId: "{typeId}" },
    },
    {
      title: "[TYPE-1] an xKey that is the id of a built-in",
      method: "POST",
      path: "{S}/types",
      body: { xKey: "chat" },
      status: 409,
      code: "type.xkey_conflict",
      details: { xKey: "chat", existingTypeId: "chat" },
    },
    {
      title: "[TYPE-1] an xKey outside its grammar is request.invalid_field",
      method: "POST",
      path: "{S}/types",
      body: { xKey: "has spaces" },
      status: 400,
      code: "request.invalid_field",
    },
    {
      title: "[TYPE-1] an xKey of 129 characters is request.invalid_field",
      method: "POST",
      path: "{S}/types",
      body: { xKey: "x".repeat(129) },
      status: 400,
      code: "request.invalid_field",
    },
    {
      title: "[API-1] properties is no key of a type create",
      method: "POST",
      path: "{S}/types",
      body: { xKey: "x1", properties: [] },
      status: 400,
      code: "request.unknown_field",
      details: { fields: ["properties"] },
    },
    {
      title: "[API-19] an unknown type in the path is 404",
      method: "GET",
      path: "{S}/types/nope",
      status: 404,
      code: "type.not_found",
    },
    {
      title: "[API-19] deleting a type is 501",
      method: "DELETE",
      path: "{T}",
      status: 501,
      code: "sdk.not_implemented",
    },
  ]);

  rule("[TYPE-5] a derived type is made once and then adopted; its id follows from its key and the space", async () => {
    const create = (spaceId: string, body: object) =>
      shared.client.post<{ typeId: string; name?: string }>(`/v1/spaces/${spaceId}/types`, body, 201);
    const [one, other] = [await createSpace(shared.client), await createSpace(shared.client)];
    const body = { xKey: "app/notes", name: "Notes", derived: true };
    const made = await create(one.id, body);
    expect(await create(one.id, { ...body, name: "Another" })).toEqual(made);
    expect((await create(other.id, body)).typeId).not.toBe(made.typeId);
    const refused = await shared.client.request("POST", `/v1/spaces/${one.id}/types`, { body: { xKey: "app/notes" } });
    expect(refused.status).toBe(409);
    // One that has an id of its own is adopted under it.
    const { typeId } = await createType(shared.client, one.id, "plain");
    expect((await create(one.id, { xKey: "plain", derived: true })).typeId).toBe(typeId);
  });

  rule(
    "[TYPE-5] what a type declares as derived has ids of its own type, is adopted, and is made anew once removed",
    async () => {
      const { id: spaceId } = await createSpace(shared.client);
      const types = `/v1/spaces/${spaceId}/types`;
      const typeOf = async (xKey: string) =>
        `${types}/${(await shared.client.post<{ typeId: string }>(types, { xKey, derived: true }, 201)).typeId}`;
      const [one, other] = [await typeOf("one"), await typeOf("other")];
      const property = async (type: string) =>
        (await shared.client.post<{ propId: string }>(`${type}/properties`, { ...PROPERTY, derived: true }, 201))
          .propId;
      const PROPERTY = { name: "Due", xKey: "due", kind: "string" };
      const propId = await property(one);
      expect(await property(one)).toBe(propId);
      expect(await property(other)).not.toBe(propId);
      await shared.client.del(`${one}/properties/${propId}`);
      expect(await property(one)).not.toBe(propId);

      const draft = { name: "tasks", derived: true, fields: [{ key: "title", kind: "string", mutableBy: "any" }] };
      const dataset = async () =>
        (await shared.client.post<{ datasetDefId: string }>(`${one}/datasets`, draft, 201)).datasetDefId;
      const defId = await dataset();
      expect(await dataset()).toBe(defId);
      const conflict = await shared.client.request("POST", `${other}/datasets`, { body: draft });
      expect([conflict.status, conflict.json]).toMatchObject([409, { error: { code: "dataset.name_conflict" } }]);
      await shared.client.del(`${one}/datasets/${defId}`);
      expect(await dataset()).not.toBe(defId);
      const keyless = await shared.client.request("POST", `${one}/properties`, {
        body: { name: "Due", kind: "string", derived: true },
      });
      expect([keyless.status, keyless.json]).toMatchObject([400, { error: { details: { field: "xKey" } } }]);
    },
  );

  rule("[TYPE-1] xKeys belong to a space: another space may use the same", async () => {
    const other = await createSpace(shared.client);
    const made = await createType(shared.client, other.id, "books");
    expect(made.typeId).not.toBe(type.typeId);
  });
});

describe("dataset declarations", () => {
  rule("[TYPE-3] [TYPE-4] 201 {datasetDefId}; read back with defaults; listed with a schema and its type", async () => {
    const fresh = await createType(shared.client, space.id);
    const name = uniqueName("things");
    const { datasetDefId } = await shared.client.post<{ datasetDefId: string }>(
      `/v1/spaces/${space.id}/types/${fresh.typeId}/datasets`,
      { name, displayName: "Things", idRule: "user", fields: [...ANY_FIELDS, { key: "once", kind: "string" }] },
      201,
    );
    const { datasets } = await shared.client.get<{ datasets: JsonObject[] }>(
      `/v1/spaces/${space.id}/types/${fresh.typeId}/datasets`,
    );
    expect(datasets).toHaveLength(1);
    expect(datasets[0]).toMatchObject({
      id: datasetDefId,
      name,
      displayName: "Things",
      idRule: "user",
      deleteBy: "anyone",
    });
    const fields = datasets[0]!["fields"] as JsonObject[];
    expect(fields.find((field) => field["key"] === "once")).toMatchObject({
      kind: "string",
      scope: "synced",
      mutableBy: "never",
    });

    const listing = await shared.client.get<{ datasets: { name: string; schema: JsonObject; typeId?: string }[] }>(
      `/v1/spaces/${space.id}/datasets`,
    );
    const entry = listing.datasets.find((candidate) => candidate.name === name)!;
    expect(entry.typeId).toBe(fresh.typeId);
    expect(entry.schema).toMatchObject({
      type: "object",
      additionalProperties: false,
      "x-id": "user",
      properties: { n: { "x-scope": "synced", "x-mutable-by": "any" }, once: { "x-scope": "synced" } },
    });
    expect((entry.schema["properties"] as JsonObject)["once"]).not.toHaveProperty("x-mutable-by");
  });

  rule("[TYPE-3] a name is unique in the space: other types and built-ins", async () => {
    const items = await createCollection(shared.client, space.id);
    const path = `/v1/spaces/${space.id}/types/${type.typeId}/datasets`;
    for (const name of [items.dataset, "chat_messages", "editor_blocks"]) {
      const error = await shared.client.fails("POST", path, { name, fields: [] }, 409, "dataset.name_conflict");
      expect(error.details).toMatchObject({ name });
    }
  });

  runScenarios(context, [
    ...["prop", "schema", "Upper", "has space", "-dash", "x".repeat(65)].map((name) => ({
      title: `[TYPE-3] the name ${name.slice(0, 12)} is request.invalid_field`,
      method: "POST",
      path: "{T}/datasets",
      body: { name, fields: [] },
      status: 400,
      code: "request.invalid_field",
    })),
    {
      title: "[API-1] name is required",
      method: "POST",
      path: "{T}/datasets",
      body: { fields: [] },
      status: 400,
      code: "request.missing_field",
      details: { field: "name" },
    },
    {
      title: "[TYPE-3] idPattern without idRule user",
      method: "POST",
      path: "{T}/datasets",
      body: { name: "decl_a", idPattern: "[a-z]+", fields: [] },
      status: 400,
      code: "dataset.decl_invalid",
    },
    {
      title: "[TYPE-3] deleteBy author without a creator stamp",
      method: "POST",
      path: "{T}/datasets",
      body: { name: "decl_b", deleteBy: "author", fields: [] },
      status: 400,
      code: "dataset.decl_invalid",
    },
    {
      title: "[TYPE-3] two fields with one stamp",
      method: "POST",
      path: "{T}/datasets",
      body: {
        name: "decl_c",
        fields: [
          { key: "a", kind: "datetime", stamp: "createTime" },
          { key: "b", kind: "datetime", stamp: "createTime" },
        ],
      },
      status: 400,
      code: "dataset.decl_invalid",
    },
    {
      title: "[TYPE-3] two fields with one key",
      method: "POST",
      path: "{T}/datasets",
      body: {
        name: "decl_d",
        fields: [
          { key: "a", kind: "string" },
          { key: "a", kind: "number" },
        ],
      },
      status: 400,
      code: "dataset.decl_invalid",
    },
  ]);

  rule("[TYPE-3] stamps: creator and times are set by the server and refuse client writes", async () => {
    const items = await createCollection(shared.client, space.id, {
      idRule: "auto",
      fields: [
        { key: "text", kind: "string", mutableBy: "author" },
        { key: "by", kind: "string", stamp: "creator" },
        { key: "at", kind: "datetime", stamp: "createTime" },
        { key: "changed", kind: "datetime", stamp: "modifyTime" },
      ],
      deleteBy: "author",
    });
    const { id: accountId } = await shared.client.get<{ id: string }>("/v1/account");
    const made = await items.modify([{ id: "", upsert: true, ops: [{ type: "$set", value: { text: "hello" } }] }]);
    const id = made.recordIds[0]!;
    const row = await items.find(id);
    expect(row).toMatchObject({ id, text: "hello", by: accountId });
    expect((row!["at"] as JsonObject)["$date"]).toBeString();
    await untilAfter(row!["at"]);
    await items.modify([{ id, ops: [{ type: "$set", path: "text", value: "edited" }] }]);
    const edited = await items.find(id);
    expect(edited).toMatchObject({ text: "edited", by: accountId, at: row!["at"]! });
    const instant = (entry: JsonObject): string => (entry["changed"] as JsonObject)["$date"] as string;
    expect(instant(edited!) > instant(row!)).toBe(true);
    const reply = await shared.client.request("POST", `${items.path}/modify`, {
      body: { ...items.target, records: [{ id, ops: [{ type: "$set", path: "by", value: "someone" }] }] },
    });
    expect(reply.status).toBe(400);
    expect(await items.find(id)).toMatchObject({ by: accountId });
  });
});
