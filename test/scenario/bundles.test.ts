/** Bundles: adopt or install, limits, resolve, children and uninstall (BUNDLE-1 to BUNDLE-4). */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { JsonObject, Page, SpaceInfo } from "../support/server/client.ts";
import { ABSENT, createObject, createSpace, createType, uniqueName } from "../support/server/fixtures.ts";
import { runScenarios, type Scenario } from "../support/server/scenario.ts";

interface Bundle {
  id: string;
  name?: string;
  rootId: string;
  roots?: string[];
  losers?: string[];
  derived?: boolean;
}
interface Ensured {
  bundle: Bundle;
  installed: boolean;
}

let space: SpaceInfo;
let known: Bundle;
let unclaimed: string;
const shared = useServer({}, async ({ client }) => {
  space = await createSpace(client);
  known = (await client.post<Ensured>(`/v1/spaces/${space.id}/bundles`, { id: "known/v1", name: "Known" })).bundle;
  unclaimed = (await createObject(client, space.id)).id;
});
const context = () => ({
  client: shared.client,
  vars: { B: bundles(), NONE: `/v1/spaces/${ABSENT}/bundles`, rootId: known.rootId, unclaimed },
});
const bundles = (): string => `/v1/spaces/${space.id}/bundles`;
const bundlePath = (id: string): string => `${bundles()}/${encodeURIComponent(id)}`;
const ensure = (body: JsonObject): Promise<Ensured> => shared.client.post<Ensured>(bundles(), body);
const listed = async (id: string): Promise<Bundle | undefined> =>
  (await shared.client.get<{ bundles: Bundle[] }>(bundles())).bundles.find((bundle) => bundle.id === id);
const objectRow = async (id: string): Promise<JsonObject | undefined> => {
  const page = await shared.client.post<Page>(`/v1/spaces/${space.id}/objects/query`, { filter: { id } });
  return page.records[0];
};
const typesOf = async (id: string): Promise<unknown> => ((await objectRow(id))!["svc"] as JsonObject)["types"];
const child = async (id: string, body: JsonObject): Promise<string> =>
  (await shared.client.post<{ objectId: string }>(`${bundlePath(id)}/children`, body)).objectId;

const refused = (title: string, body: JsonObject, code: string, details: JsonObject, path = "{B}"): Scenario => ({
  title: `[BUNDLE-4] ${title}`,
  method: "POST",
  path,
  body,
  status: 400,
  code,
  details,
});
const invalid = (title: string, body: JsonObject, field: string, path?: string): Scenario =>
  refused(title, body, "request.invalid_field", { field }, path);
const CHILDREN = "{B}/known%2Fv1/children";
const RESOLVE = "{B}/known%2Fv1/resolve";
const missing = (method: string, path: string, body?: JsonObject): Scenario => ({
  title: `[BUNDLE-1] an unknown bundle is not found: ${method} ${path}`,
  method,
  path,
  ...(body ? { body } : {}),
  status: 404,
  code: "bundle.not_found",
});

describe("ensure", () => {
  rule("[BUNDLE-1] the first call installs: the root carries the types, the properties and the name", async () => {
    const id = `${uniqueName("notes")}/v1`;
    const { bundle, installed } = await ensure({
      id,
      name: "Notes",
      rootTypes: ["page"],
      rootProperties: { svc: { description: "all of them" } },
    });
    expect(installed).toBe(true);
    expect(bundle).toEqual({ id, name: "Notes", rootId: bundle.rootId, roots: [bundle.rootId] });
    expect(await objectRow(bundle.rootId)).toMatchObject({ svc: { name: "Notes", description: "all of them" } });
    expect(await typesOf(bundle.rootId)).toContain("page");
  });

  rule("[BUNDLE-1] where a winner exists the call is a pure read: other arguments change nothing", async () => {
    const { bundle, installed } = await ensure({ id: known.id, name: "Other", rootTypes: ["chat"], derived: true });
    expect({ bundle, installed }).toEqual({ bundle: known, installed: false });
    expect((await objectRow(known.rootId))!["svc"]).toMatchObject({ name: "Known" });
  });

  rule("[BUNDLE-1] calls at the same time install once", async () => {
    const id = `${uniqueName("race")}/v1`;
    const answers = await Promise.all(Array.from({ length: 6 }, () => ensure({ id })));
    expect(answers.filter(({ installed }) => installed)).toHaveLength(1);
    expect(new Set(answers.map(({ bundle }) => bundle.rootId)).size).toBe(1);
  });

  rule("[BUNDLE-2] a derived root is a function of space and bundle id", async () => {
    const id = `${uniqueName("general-chat")}/v1`;
    const { bundle } = await ensure({ id, derived: true, rootTypes: ["chat"] });
    expect(bundle.derived).toBe(true);
    expect((await ensure({ id, derived: true })).bundle).toEqual(bundle);
    const elsewhere = await createSpace(shared.client);
    const other = await shared.client.post<Ensured>(`/v1/spaces/${elsewhere.id}/bundles`, { id, derived: true });
    expect(other.installed).toBe(true);
    expect(other.bundle.rootId).not.toBe(bundle.rootId);
  });

  rule("[BUNDLE-2] a derived root is permanent", async () => {
    const { bundle } = await ensure({ id: `${uniqueName("fixed")}/v1`, derived: true });
    const object = `/v1/spaces/${space.id}/objects/${bundle.rootId}`;
    await shared.client.fails("DELETE", object, undefined, 409, "space.derived_undeletable");
    expect(await listed(bundle.id)).toEqual(bundle);
  });

  rule("[BUNDLE-4] a refusal names the field, the rule and the remedy", async () => {
    const fault = (body: JsonObject) => shared.client.fails("POST", bundles(), body, 400, "request.invalid_field");
    expect(await fault({ id: "" })).toEqual({
      code: "request.invalid_field",
      message: "The field id is refused: it must have 1 to 256 bytes; choose a short one such as general-chat/v1",
      details: { field: "id", reason: "must have 1 to 256 bytes" },
    });
    expect((await fault({ id: "n/v1", name: "x".repeat(1025) })).message).toBe(
      "The field name is refused: it must have at most 1024 bytes; shorten it",
    );
  });

  rule("[BUNDLE-4] a refused install leaves no bundle", async () => {
    const id = `${uniqueName("refused")}/v1`;
    await shared.client.fails("POST", bundles(), { id, rootTypes: ["no-such-type"] }, 400, "type.not_found");
    await shared.client.fails("GET", bundlePath(id), undefined, 404, "bundle.not_found");
    expect((await ensure({ id })).installed).toBe(true);
  });

  rule("[BUNDLE-4] a root property against its format is refused before anything is made", async () => {
    const { typeId } = await createType(shared.client, space.id);
    const properties = `/v1/spaces/${space.id}/types/${typeId}/properties`;
    const draft = { name: "Due", kind: "string", format: { type: "date" } };
    const { propId } = await shared.client.post<{ propId: string }>(properties, draft, 201);
    const id = `${uniqueName("format")}/v1`;
    const body = { id, rootTypes: [typeId], rootProperties: { [typeId]: { [propId]: "tomorrow" } } };
    const error = await shared.client.fails("POST", bundles(), body, 400, "property.format_violation");
    expect(error.details).toMatchObject({ propId });
    await shared.client.fails("GET", bundlePath(id), undefined, 404, "bundle.not_found");
  });

  rule("[BUNDLE-4] the longest id, name and list of types are taken", async () => {
    const id = uniqueName("long").padEnd(256, "x");
    const name = "é".repeat(512);
    const { bundle } = await ensure({ id, name, rootTypes: Array.from({ length: 32 }, () => "page") });
    expect(bundle).toMatchObject({ id, name });
    expect(await shared.client.get<Bundle>(bundlePath(id))).toEqual(bundle);
  });

  runScenarios(context, [
    refused("an install without an id is refused", {}, "request.missing_field", { field: "id" }),
    refused("an unknown key is refused", { id: "k/v1", more: 1 }, "request.unknown_field", {}),
    invalid("an empty id is refused", { id: "" }, "id"),
    invalid("an id over 256 bytes is refused", { id: "é".repeat(129) }, "id"),
    invalid("a name over 1,024 bytes is refused", { id: "n/v1", name: "é".repeat(513) }, "name"),
    invalid(
      "more than 32 root types are refused",
      { id: "t/v1", rootTypes: Array.from({ length: 33 }, () => "page") },
      "rootTypes",
    ),
    invalid(
      "root properties over 64 KiB are refused",
      { id: "p/v1", rootProperties: { svc: { description: "x".repeat(64 << 10) } } },
      "rootProperties",
    ),
    refused("an unknown root type is refused", { id: "u/v1", rootTypes: ["nowhere"] }, "type.not_found", {}),
    refused(
      "a root property of another kind is refused",
      { id: "f/v1", rootProperties: { svc: { name: 5 } } },
      "property.kind_mismatch",
      {},
    ),
  ]);
});

describe("reading", () => {
  rule("[BUNDLE-1] one bundle is a bare Bundle, the list holds the same", async () => {
    expect(await shared.client.get<Bundle>(bundlePath(known.id))).toEqual(known);
    expect(await listed(known.id)).toEqual(known);
  });

  rule("[BUNDLE-4] the registry's raw rows are read-only", async () => {
    const base = `/v1/spaces/${space.id}`;
    const target = { objectId: space.spaceIndexObjectId!, dataset: "bundles" };
    const page = await shared.client.post<Page>(`${base}/query`, { ...target, filter: { id: known.id } });
    expect(page.records[0]).toMatchObject({ id: known.id, rootId: known.rootId });
    const records = [{ id: known.id, ops: [{ type: "$set", path: "name", value: "Taken" }] }];
    await shared.client.fails("POST", `${base}/modify`, { ...target, records }, 400, "dataset.validation");
    expect(await shared.client.get<Bundle>(bundlePath(known.id))).toEqual(known);
  });

  runScenarios(context, [
    missing("GET", "{B}/nowhere"),
    missing("POST", "{B}/nowhere/resolve", { loserRootId: ABSENT }),
    missing("POST", "{B}/nowhere/children", { seed: "s" }),
    {
      title: "[API-11] an unknown space is not found",
      method: "GET",
      path: "{NONE}",
      status: 404,
      code: "space.not_found",
    },
  ]);
});

describe("resolve", () => {
  runScenarios(context, [
    {
      title: "[BUNDLE-1] the winner is no loser",
      method: "POST",
      path: RESOLVE,
      body: { loserRootId: "{rootId}" },
      status: 409,
      code: "bundle.not_loser",
    },
    {
      title: "[BUNDLE-1] a root that no install claimed is no loser",
      method: "POST",
      path: RESOLVE,
      body: { loserRootId: "{unclaimed}" },
      status: 409,
      code: "bundle.not_loser",
    },
    refused("resolve needs the loser's root", {}, "request.missing_field", { field: "loserRootId" }, RESOLVE),
  ]);

  rule("[BUNDLE-1] a root that was deleted already resolves at once", async () => {
    const id = `${uniqueName("again")}/v1`;
    const first = (await ensure({ id })).bundle.rootId;
    await shared.client.del(`/v1/spaces/${space.id}/objects/${first}`);
    await ensure({ id });
    await shared.client.post(`${bundlePath(id)}/resolve`, { loserRootId: first }, 204);
  });
});

describe("children", () => {
  rule("[BUNDLE-3] a seed gives the same child at every call, another seed another", async () => {
    const first = await child(known.id, { seed: "inbox", types: ["page"] });
    expect(await child(known.id, { seed: "inbox" })).toBe(first);
    expect(await child(known.id, { seed: "outbox" })).not.toBe(first);
    expect(await typesOf(first)).toContain("page");
  });

  rule("[BUNDLE-3] types count at the first call only", async () => {
    const id = await child(known.id, { seed: "typed", types: ["page"] });
    expect(await child(known.id, { seed: "typed", types: ["chat"] })).toBe(id);
    expect(await typesOf(id)).not.toContain("chat");
  });

  rule("[BUNDLE-3] a seed belongs to its root: two bundles share no child", async () => {
    const other = (await ensure({ id: `${uniqueName("other")}/v1` })).bundle;
    expect(await child(other.id, { seed: "inbox" })).not.toBe(await child(known.id, { seed: "inbox" }));
  });

  runScenarios(context, [
    refused("a child needs a seed", {}, "request.missing_field", { field: "seed" }, CHILDREN),
    invalid("an empty seed is refused", { seed: "" }, "seed", CHILDREN),
    invalid("a seed over 256 bytes is refused", { seed: "é".repeat(129) }, "seed", CHILDREN),
    refused("a child of an unknown type is refused", { seed: "u", types: ["nowhere"] }, "type.not_found", {}, CHILDREN),
  ]);
});

describe("uninstall", () => {
  rule(
    "[BUNDLE-1] [BUNDLE-3] deleting a created root uninstalls; its children end with it; a fresh install joins the roots",
    async () => {
      const id = `${uniqueName("gone")}/v1`;
      const first = (await ensure({ id })).bundle.rootId;
      const childId = await child(id, { seed: "s" });
      await shared.client.del(`/v1/spaces/${space.id}/objects/${first}`);
      await shared.client.fails("GET", bundlePath(id), undefined, 404, "bundle.not_found");
      expect(await listed(id)).toBeUndefined();
      expect(await objectRow(childId)).toBeUndefined();

      const { bundle, installed } = await ensure({ id });
      expect(installed).toBe(true);
      expect(bundle.rootId).not.toBe(first);
      expect(bundle.roots!.toSorted()).toEqual([first, bundle.rootId].toSorted());
      expect(bundle).not.toHaveProperty("losers");
    },
  );
});
