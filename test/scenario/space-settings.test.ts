/** Settings of a space: set, unset, refused. */
import { describe, expect } from "bun:test";
import { LIMITS } from "../../src/protocol/limits.ts";
import { rule, useServer } from "../support/rule.ts";
import type { SpaceInfo } from "../support/server/client.ts";
import { createSpace } from "../support/server/fixtures.ts";
import { runScenarios } from "../support/server/scenario.ts";

let space: SpaceInfo;
let accountId: string;
const shared = useServer({}, async (server) => {
  space = await createSpace(server.client, "first");
  accountId = (await server.client.get<{ id: string }>("/v1/account")).id;
});
const context = () => ({ client: shared.client, vars: { spaceId: space.id, S: `/v1/spaces/${space.id}`, accountId } });

describe("settings", () => {
  rule("[SPACE-11] set merges per key, unset removes, the rest stays", async () => {
    const made = await createSpace(shared.client);
    const path = `/v1/spaces/${made.id}`;
    await shared.client.patch(`${path}/settings`, { set: { notifyMode: "mentions", size: 3, wide: true } });
    expect((await shared.client.get<SpaceInfo>(path)).settings).toEqual({
      notifyMode: "mentions",
      size: 3,
      wide: true,
    });
    await shared.client.patch(`${path}/settings`, { set: { size: 4 }, unset: ["wide"] });
    expect((await shared.client.get<SpaceInfo>(path)).settings).toEqual({ notifyMode: "mentions", size: 4 });
    await shared.client.patch(`${path}/settings`, { unset: ["notifyMode", "size", "never-there"] });
    expect(await shared.client.get<SpaceInfo>(path)).not.toHaveProperty("settings");
  });

  rule("[SPACE-11] settings that no row has room for are refused, and those that were stay", async () => {
    const made = await createSpace(shared.client);
    const path = `/v1/spaces/${made.id}`;
    await shared.client.patch(`${path}/settings`, { set: { first: "a".repeat(600_000) } });
    const second = { set: { second: "b".repeat(600_000) } };
    const error = await shared.client.fails("PATCH", `${path}/settings`, second, 400, "dataset.validation");
    expect(error.message).toContain("1048576 bytes");
    const { settings } = await shared.client.get<SpaceInfo>(path);
    expect(Object.keys(settings ?? {})).toEqual(["first"]);
  });

  rule("[SPACE-1] name, description and icon have a bound, so that every row has room for them", async () => {
    const made = await createSpace(shared.client);
    const tooLong = "n".repeat(LIMITS.aboutTextChars + 1);
    for (const field of ["name", "description", "iconCid"]) {
      await shared.client.fails("PATCH", `/v1/spaces/${made.id}`, { [field]: tooLong }, 400, "request.invalid_field");
      await shared.client.fails("POST", "/v1/spaces", { [field]: tooLong }, 400, "request.invalid_field");
      await shared.client.fails("PUT", "/v1/account/metadata", { [field]: tooLong }, 400, "request.invalid_field");
      await shared.client.patch(`/v1/spaces/${made.id}`, { [field]: tooLong.slice(1) });
    }
  });

  runScenarios(context, [
    {
      title: "[SPACE-11] an empty patch is request.missing_field",
      method: "PATCH",
      path: "{S}/settings",
      body: {},
      status: 400,
      code: "request.missing_field",
    },
    {
      title: "[SPACE-11] empty set and unset change nothing and are request.missing_field",
      method: "PATCH",
      path: "{S}/settings",
      body: { set: {}, unset: [] },
      status: 400,
      code: "request.missing_field",
    },
    {
      title: "[SPACE-11] a key in both set and unset is request.invalid_field",
      method: "PATCH",
      path: "{S}/settings",
      body: { set: { a: 1 }, unset: ["a"] },
      status: 400,
      code: "request.invalid_field",
    },
    {
      title: "[SPACE-11] a key with a dot is request.invalid_field",
      method: "PATCH",
      path: "{S}/settings",
      body: { set: { "a.b": 1 } },
      status: 400,
      code: "request.invalid_field",
    },
    {
      title: "[SPACE-11] an empty key is request.invalid_field",
      method: "PATCH",
      path: "{S}/settings",
      body: { set: { "": 1 } },
      status: 400,
      code: "request.invalid_field",
    },
    {
      title: "[SPACE-11] an empty key in unset is request.invalid_field that names unset",
      method: "PATCH",
      path: "{S}/settings",
      body: { unset: [""] },
      status: 400,
      code: "request.invalid_field",
      details: { field: "unset" },
    },
    {
      title: "[API-11] an unknown space is 404",
      method: "PATCH",
      path: "/v1/spaces/bafyunknown/settings",
      body: { set: { a: 1 } },
      status: 404,
      code: "space.not_found",
    },
  ]);

  rule("[SPACE-11] values that are no scalars are refused with 400 and not written", async () => {
    const made = await createSpace(shared.client);
    for (const value of [{}, [], { a: 1 }, [1], null]) {
      const reply = await shared.client.request("PATCH", `/v1/spaces/${made.id}/settings`, {
        body: { set: { k: value } },
      });
      expect([value, reply.status]).toEqual([value, 400]);
    }
    expect(await shared.client.get<SpaceInfo>(`/v1/spaces/${made.id}`)).not.toHaveProperty("settings");
  });
});
