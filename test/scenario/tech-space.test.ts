/** The account's own datasets: the spaces and profile collections, and the account record. */
import { Database } from "bun:sqlite";
import { describe, expect } from "bun:test";
import { join } from "node:path";
import { rule, useServer } from "../support/rule.ts";
import { type JsonObject, type Page, type Row, type SpaceInfo, until } from "../support/server/client.ts";
import { createSpace } from "../support/server/fixtures.ts";
import { runScenarios } from "../support/server/scenario.ts";
import { startServer } from "../support/server/server.ts";

let alpha: SpaceInfo;
const shared = useServer({}, async (server) => {
  alpha = await createSpace(server.client, "alpha");
  await createSpace(server.client, "beta");
  await createSpace(server.client, "gamma");
});
const context = () => ({ client: shared.client, vars: { alpha: alpha.id } });
const names = (page: Page): unknown[] => page.records.map((row) => row["name"]);

describe("spaces collection", () => {
  rule("[SPACE-8] rows are raw: the named fields, _ver, and no key material", async () => {
    const page = await shared.client.post<Page>("/v1/spaces/query", { filter: { id: alpha.id } });
    expect(page.records).toHaveLength(1);
    const row = page.records[0] as Row;
    expect(row).toMatchObject({ id: alpha.id, name: "alpha", status: "active", ownRole: "owner" });
    expect(row["createdAt"]).toEqual({ $date: expect.any(String) });
    expect(row["_ver"]).toMatchObject({ id: expect.any(String) });
    expect(JSON.stringify(row)).not.toMatch(/readKey|guestKey|secret|privateKey/i);
    expect(page).not.toHaveProperty("total");
    expect(page).not.toHaveProperty("hasNext");
  });

  rule("[SPACE-8] filter, sort, limit, offset and totals", async () => {
    const { client } = shared;
    const filter = { name: { $in: ["alpha", "beta", "gamma"] } };
    expect(names(await client.post<Page>("/v1/spaces/query", { filter, sort: ["-name"] }))).toEqual([
      "gamma",
      "beta",
      "alpha",
    ]);
    const page = await client.post<Page>("/v1/spaces/query", {
      filter,
      sort: ["name"],
      limit: 1,
      offset: 1,
      includeTotal: true,
    });
    expect(names(page)).toEqual(["beta"]);
    expect(page).toMatchObject({ total: 3, hasNext: true });
  });

  runScenarios(context, [
    {
      title: "[SPACE-8] an empty body is everything",
      method: "POST",
      path: "/v1/spaces/query",
      status: 200,
      mustContain: ["alpha", "beta", "gamma"],
    },
    {
      title: "[SPACE-8] dataset spaces is the default spelled out",
      method: "POST",
      path: "/v1/spaces/query",
      body: { dataset: "spaces", filter: { name: "beta" } },
      status: 200,
      mustContain: ["beta"],
      mustNotContain: ["alpha"],
    },
    ...["devices", "nonsense"].map((dataset) => ({
      title: `[QUERY-7] dataset ${dataset} is request.invalid_field`,
      method: "POST",
      path: "/v1/spaces/query",
      body: { dataset },
      status: 400,
      code: "request.invalid_field",
    })),
    {
      title: "[QUERY-7] a given objectId is request.invalid_field",
      method: "POST",
      path: "/v1/spaces/query",
      body: { objectId: "something" },
      status: 400,
      code: "request.invalid_field",
      details: { field: "objectId" },
    },
    ...["/v1/devices/query", "/v1/spaces/{alpha}/objects/any/files/query"].flatMap((path) =>
      ["objectId", "dataset"].map((field) => ({
        title: `[QUERY-7] ${field} in ${path} is request.invalid_field`,
        method: "POST",
        path,
        body: { [field]: "given" },
        status: 400,
        code: "request.invalid_field",
        details: { field },
      })),
    ),
    {
      title: "[API-1] mailboxCapacity belongs to subscribe alone",
      method: "POST",
      path: "/v1/spaces/query",
      body: { mailboxCapacity: 64 },
      status: 400,
      code: "request.unknown_field",
      details: { fields: ["mailboxCapacity"] },
    },
    {
      title: "[SPACE-8] projection is accepted and not applied",
      method: "POST",
      path: "/v1/spaces/query",
      body: { projection: { name: 1 }, filter: { id: "{alpha}" } },
      status: 200,
      mustContain: ['"status":"active"'],
    },
  ]);

  rule("[SPACE-8] rows that wait on this device alone are queried and watched like all others", async () => {
    const { client } = shared;
    const other = await startServer();
    const identity = (await other.client.get<{ id: string }>("/v1/account")).id;
    await other[Symbol.asyncDispose]();
    const filter = { status: { $in: ["one_to_one_pending", "one_to_one_declined", "deleted"] } };
    await using stream = await client.stream("POST", "/v1/spaces/query/subscribe", { filter });
    expect((await stream.snapshot()).records).toEqual([]);
    await using pendingOnly = await client.stream("POST", "/v1/spaces/query/subscribe", {
      filter: { status: "one_to_one_pending" },
      sort: ["name"],
      limit: 5,
    });
    await pendingOnly.snapshot();

    const body = { peerIdentity: identity, displayHint: { name: "Otto" } };
    await client.post("/v1/spaces/one-to-one/register-incoming", body, 204);
    const [added] = (await stream.changes())[0]!.added!;
    expect(added!.doc).toMatchObject({
      name: "Otto",
      status: "one_to_one_pending",
      spaceType: "svc.onetoone",
      author: identity,
      ownRole: "none",
      createdAt: { $date: expect.any(String) },
      _ver: { id: expect.any(String) },
    });
    expect((await pendingOnly.changes())[0]!.added![0]!.id).toBe(added!.id);
    const page = await client.post<Page>("/v1/spaces/query", { filter: { name: "Otto" }, includeTotal: true });
    expect(page).toMatchObject({ total: 1, records: [added!.doc] });
    const all = await client.post<Page>("/v1/spaces/query", { sort: ["-createdAt"], limit: 1, includeTotal: true });
    expect(all.records[0]!["id"]).toBe(added!.id);
    expect(all.total).toBe((await client.get<SpaceInfo[]>("/v1/spaces?status=all")).length);
    await client.patch(`/v1/spaces/${added!.id}/settings`, { set: { color: "red" } });
    expect((await stream.changes())[0]!.updated![0]!.doc).toMatchObject({ settings: { color: "red" } });
    await pendingOnly.changes();

    await client.post(`/v1/spaces/${added!.id}/one-to-one/decline`, {}, 204);
    const [updated] = (await stream.changes())[0]!.updated!;
    expect(updated!.doc).toMatchObject({ id: added!.id, status: "one_to_one_declined", settings: { color: "red" } });
    expect((await pendingOnly.changes())[0]!.removed).toEqual([{ id: added!.id, reason: "filtered-out" }]);
    expect(await client.post<Page>("/v1/spaces/query", { filter: { status: "one_to_one_pending" } })).toEqual({
      records: [],
    });
    // The row is the account's now: one.
    const { records } = await client.post<Page>("/v1/spaces/query", { filter: { id: added!.id } });
    expect(records).toHaveLength(1);
    expect(records[0]!["_ver"]).toMatchObject({ id: expect.any(String) });
  });

  rule("[SPACE-8] a created, renamed and deleted space arrives as changes", async () => {
    await using stream = await shared.client.stream("POST", "/v1/spaces/query/subscribe", {
      filter: { status: "active" },
      driftBudgetPercent: 100,
    });
    const snapshot = await stream.snapshot();
    expect(names(snapshot)).toEqual(expect.arrayContaining(["alpha", "beta", "gamma"]));
    const made = await createSpace(shared.client, "delta");
    const isAbout = async (kind: "added" | "updated" | "removed", holds: (entry: JsonObject) => boolean) => {
      for (;;) {
        for (const change of await stream.changes()) {
          for (const entry of (change[kind] ?? []) as unknown as JsonObject[]) {
            if (entry["id"] === made.id && holds(entry)) return;
          }
        }
      }
    };
    await isAbout("added", (entry) => (entry["doc"] as Row)["status"] === "active");
    await shared.client.patch(`/v1/spaces/${made.id}`, { name: "epsilon" });
    await isAbout("updated", (entry) => (entry["doc"] as Row)["name"] === "epsilon");
    await shared.client.del(`/v1/spaces/${made.id}`);
    await isAbout("removed", (entry) => entry["reason"] === "filtered-out");
  });
});

describe("account record and profile", () => {
  rule("[ACC-6] id, peerId, techSpaceId; no metadata before the first profile write", async () => {
    await using server = await startServer();
    const { client } = server;
    const before = await client.get<JsonObject>("/v1/account");
    expect(Object.keys(before).sort()).toEqual(["id", "peerId", "techSpaceId"]);
    await client.put("/v1/account/metadata", { name: "Ada", description: "counts" });
    expect(await client.get<JsonObject>("/v1/account")).toEqual({
      ...before,
      metadata: { name: "Ada", description: "counts" },
    });
    await client.put("/v1/account/metadata", { description: "", iconCid: "bafyicon" });
    expect((await client.get<JsonObject>("/v1/account"))["metadata"]).toEqual({ name: "Ada", iconCid: "bafyicon" });
    const profile = await client.post<Page>("/v1/spaces/query", { dataset: "profile" });
    expect(profile.records).toHaveLength(1);
    expect(profile.records[0]).toMatchObject({ name: "Ada", iconCid: "bafyicon" });

    await server.stop();
    await using again = await startServer({ dataDir: server.dataDir });
    expect((await again.client.get<JsonObject>("/v1/account"))["metadata"]).toEqual({
      name: "Ada",
      iconCid: "bafyicon",
    });
  });

  runScenarios(context, [
    {
      title: "[API-1] a metadata PUT without any field is request.missing_field",
      method: "PUT",
      path: "/v1/account/metadata",
      body: {},
      status: 400,
      code: "request.missing_field",
    },
    {
      title: "[API-1] an unknown metadata field is request.unknown_field",
      method: "PUT",
      path: "/v1/account/metadata",
      body: { name: "x", email: "y" },
      status: 400,
      code: "request.unknown_field",
      details: { fields: ["email"] },
    },
    {
      title: "[API-1] a metadata field that is no string is request.schema",
      method: "PUT",
      path: "/v1/account/metadata",
      body: { name: 7 },
      status: 400,
      code: "request.schema",
    },
  ]);
});

describe("dataset listings", () => {
  rule("[TYPE-4] /v1/datasets lists spaces, profile and devices with JSON Schemas", async () => {
    const { datasets } = await shared.client.get<{ datasets: { name: string; schema: JsonObject; typeId?: string }[] }>(
      "/v1/datasets",
    );
    expect(datasets.map((entry) => entry.name).sort()).toEqual(["devices", "profile", "spaces"]);
    for (const entry of datasets) {
      expect(entry.schema).toMatchObject({ type: "object", properties: expect.any(Object) });
      expect(entry).not.toHaveProperty("typeId");
    }
  });

  rule("[DEV-1] boot upserts this device's row: os, version and a name, under its peer id", async () => {
    const { peerId } = await shared.client.get<{ peerId: string }>("/v1/account");
    const snapshot = async (): Promise<JsonObject | undefined> => {
      const reply = await shared.client.request("GET", "/v1/devices");
      if (reply.status !== 200) return undefined;
      return ((reply.json as JsonObject)["devices"] as JsonObject[]).find((row) => row["peerId"] === peerId);
    };
    await until(async () => (await snapshot()) !== undefined, "the device row");
    expect(await snapshot()).toMatchObject({
      peerId,
      os: "linux",
      version: expect.any(String),
      name: expect.any(String),
    });
  });
});

rule("the account's own space keeps no index of a history that nobody can ask for", async () => {
  await using server = await startServer();
  const { client, dataDir } = server;
  const { id, techSpaceId } = await client.get<{ id: string; techSpaceId: string }>("/v1/account");
  const space = await createSpace(client);
  await client.put("/v1/account/metadata", { name: "me" });
  await client.patch(`/v1/spaces/${space.id}/settings`, { set: { seen: true } });
  await server.stop();
  const countIn = (spaceId: string, table: string): number => {
    using db = new Database(join(dataDir, id, "sdk", `${spaceId}.db`), { readonly: true });
    return db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()!.n;
  };
  expect(countIn(techSpaceId, "changes")).toBeGreaterThan(3);
  expect(countIn(techSpaceId, "history")).toBe(0);
  expect(countIn(space.id, "history")).toBeGreaterThan(0);
});

rule("[SPACE-4] a newcomer without a space of its own sees who waits for it", async () => {
  await using other = await startServer();
  const identity = (await other.client.get<{ id: string }>("/v1/account")).id;
  await using newcomer = await startServer();
  await newcomer.client.post("/v1/spaces/one-to-one/register-incoming", { peerIdentity: identity }, 204);
  for (const status of ["one_to_one_pending", "all"]) {
    const rows = await newcomer.client.get<SpaceInfo[]>(`/v1/spaces?status=${status}`);
    expect(rows).toMatchObject([{ status: "one_to_one_pending", author: identity }]);
    expect(await newcomer.client.get<SpaceInfo>(`/v1/spaces/${rows[0]?.id}`)).toEqual(rows[0] as SpaceInfo);
  }
  expect(await newcomer.client.get<SpaceInfo[]>("/v1/spaces")).toEqual([]);
});
