/** Properties of types, and values of them on objects. */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import { type JsonObject, type SpaceInfo, untilAfter, type WriteResult } from "../support/server/client.ts";
import { type CreatedType, createObject, createSpace, createType } from "../support/server/fixtures.ts";
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

interface PropertyDef {
  id: string;
  propId: string;
  name: string;
  kind: string;
  scope: string;
}
const addProperty = (draft: JsonObject, typeId = type.typeId): Promise<PropertyDef> =>
  shared.client.post<PropertyDef>(`/v1/spaces/${space.id}/types/${typeId}/properties`, draft, 201);

describe("properties", () => {
  rule("[TYPE-2] 201 PropertyDef with propId; listed; an empty list means none yet", async () => {
    const fresh = await createType(shared.client, space.id);
    const path = `/v1/spaces/${space.id}/types/${fresh.typeId}/properties`;
    expect(await shared.client.get(path)).toEqual({ properties: [] });
    const made = await addProperty({ name: "Pages", kind: "number" }, fresh.typeId);
    expect(made).toMatchObject({ name: "Pages", kind: "number", scope: "synced" });
    expect(made.propId).toBe(made.id);
    expect(made.id).toMatch(/^[1-9A-HJ-NP-Za-km-z]{1,11}$/);
    const { properties } = await shared.client.get<{ properties: PropertyDef[] }>(path);
    expect(properties.map((entry) => entry.id)).toEqual([made.id]);
  });

  rule("[TYPE-7] values are keyed by propId, set and removed with set/:typeId", async () => {
    const prop = await addProperty({ name: "Rating", kind: "number" });
    const object = await createObject(shared.client, space.id, { types: [type.typeId] });
    const path = `/v1/spaces/${space.id}/properties/${object.id}`;
    const result = await shared.client.post<WriteResult>(`${path}/set/${type.typeId}`, { patch: { [prop.id]: 5 } });
    expect(result.versionId).toBe(result.changeId);
    expect(result.recordIds).toEqual([object.id]);
    expect(await shared.client.get(path)).toMatchObject({ record: { id: object.id, [type.typeId]: { [prop.id]: 5 } } });
    await shared.client.post(`${path}/set/${type.typeId}`, { patch: { [prop.id]: null } });
    const { record } = await shared.client.get<{ record: JsonObject }>(path);
    expect((record[type.typeId] ?? {}) as JsonObject).not.toHaveProperty(prop.id);
  });

  rule(
    "[TYPE-7] a local property is stored without a change: changeId is empty; neither it nor the account's own moves modifiedAt",
    async () => {
      const prop = await addProperty({ name: "Seen here", kind: "boolean", scope: "local" });
      const object = await createObject(shared.client, space.id, { types: [type.typeId] });
      const path = `/v1/spaces/${space.id}/properties/${object.id}`;
      const before = await shared.client.get<{ record: JsonObject }>(path);
      await untilAfter(before.record["modifiedAt"]!);
      const result = await shared.client.post<WriteResult>(`${path}/set/${type.typeId}`, {
        patch: { [prop.id]: true },
      });
      expect(result.changeId).toBe("");
      const own = await addProperty({ name: "Mine", kind: "boolean", scope: "account" });
      await shared.client.post<WriteResult>(`${path}/set/${type.typeId}`, { patch: { [own.id]: true } });
      const after = await shared.client.get<{ record: JsonObject }>(path);
      expect(after.record[type.typeId]).toMatchObject({ [prop.id]: true, [own.id]: true });
      expect(after.record["modifiedAt"]).toEqual(before.record["modifiedAt"]!);
    },
  );

  rule("[TYPE-7] [API-19] a kind that does not fit, an unknown property and an unknown type in the path", async () => {
    const prop = await addProperty({ name: "Count", kind: "number" });
    const object = await createObject(shared.client, space.id, { types: [type.typeId] });
    const path = `/v1/spaces/${space.id}/properties/${object.id}/set`;
    const { client } = shared;
    for (const value of ["five", true, [5], { a: 1 }]) {
      const body = { patch: { [prop.id]: value } };
      await client.fails("POST", `${path}/${type.typeId}`, body, 400, "property.kind_mismatch");
    }
    await client.fails("POST", `${path}/${type.typeId}`, { patch: { nope: 1 } }, 400, "property.not_found");
    await client.fails("POST", `${path}/nope`, { patch: { a: 1 } }, 404, "type.not_found");
    await client.fails("POST", `${path}/${type.typeId}`, {}, 400, "request.missing_field");
    const unbound = await createType(client, space.id);
    const foreign = await addProperty({ name: "Foreign", kind: "number" }, unbound.typeId);
    await client.fails("POST", `${path}/${unbound.typeId}`, { patch: { [foreign.id]: 1 } }, 400, "dataset.validation");
  });

  rule("[TYPE-7] properties of mixed scopes in one patch are request.invalid_field", async () => {
    const [synced, local] = [
      await addProperty({ name: "S", kind: "number" }),
      await addProperty({ name: "L", kind: "number", scope: "local" }),
    ];
    const object = await createObject(shared.client, space.id, { types: [type.typeId] });
    const path = `/v1/spaces/${space.id}/properties/${object.id}/set/${type.typeId}`;
    await shared.client.fails("POST", path, { patch: { [synced.id]: 1, [local.id]: 1 } }, 400, "request.invalid_field");
  });

  runScenarios(context, [
    {
      title: "[TYPE-2] an unknown kind is request.schema",
      method: "POST",
      path: "{T}/properties",
      body: { name: "x", kind: "money" },
      status: 400,
      code: "request.schema",
    },
    {
      title: "[TYPE-2] scope derived is request.schema",
      method: "POST",
      path: "{T}/properties",
      body: { name: "x", kind: "string", scope: "derived" },
      status: 400,
      code: "request.schema",
    },
    {
      title: "[API-1] a name is required",
      method: "POST",
      path: "{T}/properties",
      body: { kind: "string" },
      status: 400,
      code: "request.missing_field",
      details: { field: "name" },
    },
    {
      title: "[TYPE-1] a built-in type takes no properties",
      method: "POST",
      path: "{S}/types/chat/properties",
      body: { name: "x", kind: "string" },
      status: 400,
      code: "type.registered",
    },
    {
      title: "[API-19] properties of an unknown type",
      method: "GET",
      path: "{S}/types/nope/properties",
      status: 404,
      code: "type.not_found",
    },
  ]);
});
