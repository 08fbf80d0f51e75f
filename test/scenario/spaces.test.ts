/** Spaces: create, list, get, patch, settings, delete, sync, derived. */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import { type JsonObject, type SpaceInfo, until } from "../support/server/client.ts";
import { createCollection, createObject, createSpace, setFields } from "../support/server/fixtures.ts";
import { runScenarios } from "../support/server/scenario.ts";
import { startServer } from "../support/server/server.ts";

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
let space: SpaceInfo;
let accountId: string;
const shared = useServer({}, async (server) => {
  space = await createSpace(server.client, "first");
  accountId = (await server.client.get<{ id: string }>("/v1/account")).id;
});
const context = () => ({ client: shared.client, vars: { spaceId: space.id, S: `/v1/spaces/${space.id}`, accountId } });

describe("create", () => {
  rule("[SPACE-1] 201 SpaceInfo with every field of the table", async () => {
    const made = await shared.client.post<SpaceInfo>(
      "/v1/spaces",
      { name: "Full", description: "what it is", iconCid: "bafyicon" },
      201,
    );
    expect(made).toMatchObject({
      name: "Full",
      description: "what it is",
      iconCid: "bafyicon",
      spaceType: "svc.space",
      author: accountId,
      ownRole: "owner",
      status: "active",
    });
    expect(made.id).toMatch(/^[A-Za-z0-9]+$/);
    expect(made.spaceIndexObjectId).toBeString();
    expect(made.createdAt.$date).toMatch(INSTANT);
    expect(made).not.toHaveProperty("derived");
    expect(await shared.client.get<SpaceInfo>(`/v1/spaces/${made.id}`)).toEqual(made);
  });

  rule("[SPACE-1] what is empty is omitted: name, description, iconCid, settings, derived", async () => {
    const made = await shared.client.post<SpaceInfo>("/v1/spaces", {}, 201);
    for (const key of ["name", "description", "iconCid", "settings", "derived"]) expect(made).not.toHaveProperty(key);
    expect(made.status).toBe("active");
  });

  rule("[SPACE-6] POST is not idempotent: the same body makes another space", async () => {
    const [one, two] = [await createSpace(shared.client, "twin"), await createSpace(shared.client, "twin")];
    expect(two.id).not.toBe(one.id);
  });

  rule("[SPACE-6] what 201 announced is visible to every later read", async () => {
    const made = await createSpace(shared.client, "visible");
    const ids = (await shared.client.get<SpaceInfo[]>("/v1/spaces")).map((entry) => entry.id);
    expect(ids).toContain(made.id);
    const page = await shared.client.post<{ records: { id: string }[] }>("/v1/spaces/query", {
      filter: { id: made.id },
    });
    expect(page.records.map((row) => row.id)).toEqual([made.id]);
  });

  runScenarios(context, [
    {
      title: '[SPACE-1] spaceType "" and the default tag are taken',
      method: "POST",
      path: "/v1/spaces",
      body: { name: "a", spaceType: "" },
      status: 201,
      match: { spaceType: "svc.space" },
    },
    {
      title: "[SPACE-1] the default tag is taken",
      method: "POST",
      path: "/v1/spaces",
      body: { name: "a", spaceType: "svc.space" },
      status: 201,
    },
    {
      title: "[SPACE-1] another spaceType is request.invalid_field",
      method: "POST",
      path: "/v1/spaces",
      body: { name: "a", spaceType: "custom" },
      status: 400,
      code: "request.invalid_field",
      details: { spaceType: "custom" },
    },
    {
      title: "[API-1] a name that is no string is request.schema",
      method: "POST",
      path: "/v1/spaces",
      body: { name: ["a"] },
      status: 400,
      code: "request.schema",
    },
    {
      title: "[API-1] an unknown key is request.unknown_field",
      method: "POST",
      path: "/v1/spaces",
      body: { name: "a", color: "red" },
      status: 400,
      code: "request.unknown_field",
      details: { fields: ["color"] },
    },
  ]);
});

describe("list and get", () => {
  rule("[SPACE-9] the list is a bare array; names of any script come back byte for byte", async () => {
    const name = "Zoë \u{1F9ED} 空間 \" ' \\ \u2028 نص";
    const made = await createSpace(shared.client, name);
    const list = await shared.client.get<SpaceInfo[]>("/v1/spaces");
    expect(Array.isArray(list)).toBe(true);
    expect(list.find((entry) => entry.id === made.id)?.name).toBe(name);
  });

  runScenarios(context, [
    {
      title: "[SPACE-9] an unrecognised status yields an empty list",
      method: "GET",
      path: "/v1/spaces?status=nonsense",
      status: 200,
      match: [],
      after: (reply) => expect(reply.json).toEqual([]),
    },
    {
      title: "[SPACE-9] status=joining is an empty list when nothing joins",
      method: "GET",
      path: "/v1/spaces?status=joining",
      status: 200,
      after: (reply) => expect(reply.json).toEqual([]),
    },
    {
      title: "[API-11] an unknown id is 404 space.not_found with details.spaceId",
      method: "GET",
      path: "/v1/spaces/bafyunknown",
      status: 404,
      code: "space.not_found",
      details: { spaceId: "bafyunknown" },
    },
    {
      title: "[API-11] every route below an unknown space is 404 space.not_found",
      method: "POST",
      path: "/v1/spaces/bafyunknown/objects",
      body: {},
      status: 404,
      code: "space.not_found",
      details: { spaceId: "bafyunknown" },
    },
    {
      title: "[SYNC-16] POST sync with no peers is 204 at once",
      method: "POST",
      path: "{S}/sync",
      status: 204,
    },
    {
      title: "[API-11] sync of an unknown space is 404",
      method: "POST",
      path: "/v1/spaces/bafyunknown/sync",
      status: 404,
      code: "space.not_found",
    },
  ]);
});

describe("patch", () => {
  rule("[SPACE-10] absent keeps, an empty string clears, the mirror follows", async () => {
    const made = await createSpace(shared.client, "before");
    const path = `/v1/spaces/${made.id}`;
    await shared.client.patch(path, { description: "added" });
    await until(
      async () => (await shared.client.get<SpaceInfo>(path)).description === "added",
      "the description to be mirrored",
    );
    expect((await shared.client.get<SpaceInfo>(path)).name).toBe("before");
    await shared.client.patch(path, { name: "" });
    await until(async () => (await shared.client.get<SpaceInfo>(path)).name === undefined, "the name to be cleared");
    expect((await shared.client.get<SpaceInfo>(path)).description).toBe("added");
    const listed = (await shared.client.get<SpaceInfo[]>("/v1/spaces")).find((entry) => entry.id === made.id);
    expect(listed).toMatchObject({ description: "added" });
  });

  runScenarios(context, [
    {
      title: "[SPACE-10] a PATCH without any field is request.missing_field",
      method: "PATCH",
      path: "{S}",
      body: {},
      status: 400,
      code: "request.missing_field",
    },
    {
      title: "[SPACE-10] spaceType cannot be patched",
      method: "PATCH",
      path: "{S}",
      body: { spaceType: "svc.space" },
      status: 400,
      code: "request.unknown_field",
      details: { fields: ["spaceType"] },
    },
    {
      title: "[API-11] PATCH of an unknown space is 404",
      method: "PATCH",
      path: "/v1/spaces/bafyunknown",
      body: { name: "x" },
      status: 404,
      code: "space.not_found",
    },
  ]);
});

describe("delete", () => {
  rule("[SPACE-2] [SPACE-9] DELETE is 204; the row stays as deleted, out of the default list", async () => {
    const made = await createSpace(shared.client, "to go");
    await shared.client.del(`/v1/spaces/${made.id}`);
    const idsOf = async (query: string): Promise<string[]> =>
      (await shared.client.get<SpaceInfo[]>(`/v1/spaces${query}`)).map((entry) => entry.id);
    expect(await idsOf("")).not.toContain(made.id);
    expect(await idsOf("?status=active")).not.toContain(made.id);
    expect(await idsOf("?status=deleted")).toContain(made.id);
    expect(await idsOf("?status=all")).toEqual(expect.arrayContaining([made.id, space.id]));
    const row = await shared.client.get<SpaceInfo>(`/v1/spaces/${made.id}`);
    expect(row).toMatchObject({ id: made.id, status: "deleted" });
    expect(row).not.toHaveProperty("spaceIndexObjectId");
  });

  rule("[API-11] DELETE of a deleted space is 409: there is nothing left to delete", async () => {
    const made = await createSpace(shared.client);
    await shared.client.del(`/v1/spaces/${made.id}`);
    const error = await shared.client.fails("DELETE", `/v1/spaces/${made.id}`, undefined, 409, "space.deleted");
    expect(error.details).toEqual({ spaceId: made.id });
  });

  rule("[API-11] everything below a deleted space is 409 with details.spaceId", async () => {
    const made = await createSpace(shared.client);
    const items = await createCollection(shared.client, made.id);
    await items.modify([setFields("a", { n: 1 })]);
    await shared.client.del(`/v1/spaces/${made.id}`);
    for (const [method, path, body] of [
      ["POST", "/objects", {}],
      ["POST", "/objects/query", {}],
      ["POST", "/query", items.target],
      ["POST", "/modify", { ...items.target, records: [setFields("b", { n: 1 })] }],
      ["GET", "/types", undefined],
      ["GET", "/datasets", undefined],
      ["PATCH", "", { name: "x" }],
    ] as const) {
      const error = await shared.client.fails(method, `/v1/spaces/${made.id}${path}`, body, 409, "space.deleted");
      expect(error.details).toMatchObject({ spaceId: made.id });
    }
  });

  rule("[SPACE-11] settings of a deleted space can still be set", async () => {
    const made = await createSpace(shared.client);
    await shared.client.del(`/v1/spaces/${made.id}`);
    await shared.client.patch(`/v1/spaces/${made.id}/settings`, { set: { seen: true } });
    expect(await shared.client.get<SpaceInfo>(`/v1/spaces/${made.id}`)).toMatchObject({
      status: "deleted",
      settings: { seen: true },
    });
  });

  rule("[SPACE-2] the tombstone is sticky over a restart", async () => {
    await using first = await startServer();
    const [kept, gone] = [await createSpace(first.client), await createSpace(first.client)];
    await first.client.del(`/v1/spaces/${gone.id}`);
    await first.stop();
    await using second = await startServer({ dataDir: first.dataDir });
    expect((await second.client.get<SpaceInfo[]>("/v1/spaces")).map((entry) => entry.id)).toEqual([kept.id]);
    await second.client.fails("POST", `/v1/spaces/${gone.id}/objects`, {}, 409, "space.deleted");
  });

  runScenarios(context, [
    {
      title: "[API-11] DELETE of an unknown space is 404",
      method: "DELETE",
      path: "/v1/spaces/bafyunknown",
      status: 404,
      code: "space.not_found",
    },
  ]);
});

describe("derived", () => {
  rule("[SPACE-3] resolved, never created by reading; permanent; idempotent to create", async () => {
    await using server = await startServer();
    const { client } = server;
    const before = await client.get<{ spaces: JsonObject[] }>("/v1/spaces/derived");
    expect(before.spaces).toHaveLength(1);
    expect(before.spaces[0]).toMatchObject({ name: "agent", created: false });
    const spaceId = before.spaces[0]!["spaceId"] as string;
    expect(spaceId).toBeString();
    expect(await client.get<unknown[]>("/v1/spaces?status=all")).toEqual([]);
    await client.fails("DELETE", `/v1/spaces/${spaceId}`, undefined, 409, "space.derived_undeletable");

    const made = await client.post<SpaceInfo>("/v1/spaces/derived/agent", undefined, 201);
    expect(made).toMatchObject({
      id: spaceId,
      spaceType: "svc.space",
      derived: true,
      ownRole: "owner",
      status: "active",
    });
    expect(await client.post<SpaceInfo>("/v1/spaces/derived/agent", undefined, 201)).toEqual(made);
    expect(await client.get("/v1/spaces/derived")).toEqual({
      spaces: [{ name: "agent", spaceId, created: true, status: "active" }],
    });
    await client.fails("DELETE", `/v1/spaces/${spaceId}`, undefined, 409, "space.derived_undeletable");
    await createObject(client, spaceId);
  });

  rule("[SPACE-3] the id is a function of the account: the same phrase resolves the same space elsewhere", async () => {
    await using first = await startServer({ account: false });
    const { mnemonic } = await first.client.post<{ mnemonic: string }>("/v1/auth", {});
    await using second = await startServer({ account: false });
    await second.client.post("/v1/auth", { mnemonic });
    const idOf = async (server: typeof first): Promise<unknown> =>
      (await server.client.get<{ spaces: JsonObject[] }>("/v1/spaces/derived")).spaces[0]!["spaceId"];
    expect(await idOf(second)).toBe(await idOf(first));
    const techOf = async (server: typeof first): Promise<unknown> =>
      (await server.client.get<JsonObject>("/v1/account"))["techSpaceId"];
    expect(await techOf(second)).toBe(await techOf(first));
  });

  runScenarios(context, [
    {
      title: "[SPACE-3] a name outside the registry is 404",
      method: "POST",
      path: "/v1/spaces/derived/nonsense",
      status: 404,
      code: "space.derived_unknown",
    },
  ]);
});
