/** `POST {S}/modify`: what refuses the whole change. */
import { describe, expect } from "bun:test";
import { rule } from "../support/rule.ts";
import type { JsonObject, WriteResult } from "../support/server/client.ts";
import { content, createCollection, setFields } from "../support/server/fixtures.ts";
import { runScenarios } from "../support/server/scenario.ts";
import { op, useItems } from "../support/worlds/items.ts";

const world = useItems();

describe("refusals of the whole change", () => {
  const BAD_PATHS = [
    "a..b",
    ".a",
    "a.",
    "*",
    "a.*",
    "*.a",
    "id",
    "id.x",
    "_ver",
    "_ver.id",
    "_traces",
    "_deletedAt",
    "_x.y",
  ];
  for (const path of BAD_PATHS) {
    rule(`[DATA-2] the path ${JSON.stringify(path)} refuses the whole change: 400 dataset.validation`, async () => {
      const id = await world.record({ n: 1 });
      const records = [
        { id, ops: [op("$set", "n", 2)] },
        { id: `${id}-b`, upsert: true, ops: [op("$set", "s", "x"), op("$set", path, 1)] },
      ];
      await world.client.fails(
        "POST",
        `${world.items.path}/modify`,
        { ...world.items.target, records },
        400,
        "dataset.validation",
      );
      const keyed = [{ id, ops: [op("$set", "n", 2), op("$set", "", { [path]: 1 })] }];
      await world.client.fails(
        "POST",
        `${world.items.path}/modify`,
        { ...world.items.target, records: keyed },
        400,
        "dataset.validation",
      );
      expect(content(await world.items.find(id))).toEqual({ id, n: 1 });
      expect(await world.items.find(`${id}-b`)).toBeUndefined();
    });
  }

  const body = (records: unknown, more: JsonObject = {}) => ({
    method: "POST",
    path: "{S}/modify",
    body: { objectId: "{objectId}", dataset: "{dataset}", records, ...more },
  });
  runScenarios(
    () => ({
      client: world.client,
      vars: { S: world.items.path, objectId: world.items.objectId, dataset: world.items.dataset },
    }),
    [
      ...(["objectId", "dataset", "records"] as const).map((field) => ({
        title: `[API-1] a missing ${field} is request.missing_field`,
        method: "POST",
        path: "{S}/modify",
        body: Object.fromEntries(
          Object.entries({ objectId: "{objectId}", dataset: "{dataset}", records: [] }).filter(
            ([key]) => key !== field,
          ),
        ),
        status: 400,
        code: "request.missing_field",
        details: { field },
      })),
      {
        title: "[API-1] a missing op type is request.schema with its path",
        ...body([
          { id: "a", ops: [{ type: "$set", path: "n", value: 1 }] },
          { id: "b", ops: [] },
          { id: "c", ops: [{ path: "n" }] },
        ]),
        status: 400,
        code: "request.schema",
        details: { path: "records[2].ops[0].type" },
      },
      {
        title: "[API-1] an upsert that is no boolean is request.schema",
        ...body([{ id: "a", upsert: "yes", ops: [] }]),
        status: 400,
        code: "request.schema",
        details: { path: "records[0].upsert" },
      },
      {
        title: "[API-1] a bad scope is request.schema",
        ...body([], { scope: "account" }),
        status: 400,
        code: "request.schema",
        details: { path: "scope" },
      },
      {
        title: "[API-1] records that are no array are request.schema",
        ...body({}),
        status: 400,
        code: "request.schema",
        details: { path: "records" },
      },
      {
        title: "[API-1] a record that is no object is request.schema",
        ...body(["a"]),
        status: 400,
        code: "request.schema",
        details: { path: "records[0]" },
      },
      {
        title: "[API-1] an id that is no string is request.schema",
        ...body([{ id: 5, ops: [] }]),
        status: 400,
        code: "request.schema",
        details: { path: "records[0].id" },
      },
      {
        title: "[API-1] traceIds that are no strings are request.schema",
        ...body([], { traceIds: [1] }),
        status: 400,
        code: "request.schema",
      },
      {
        title: "[DATA-6] a dataset that nothing declares",
        method: "POST",
        path: "{S}/modify",
        body: { objectId: "{objectId}", dataset: "nonsense", records: [{ id: "a", upsert: true, ops: [] }] },
        status: 400,
        code: "dataset.unknown",
      },
      {
        title: "[API-19] an unknown object",
        method: "POST",
        path: "{S}/modify",
        body: { objectId: "bafyunknown", dataset: "{dataset}", records: [{ id: "a", upsert: true, ops: [] }] },
        status: 404,
        code: "object.not_found",
      },
    ],
  );

  rule("[DATA-10] an unknown op, an op value of a wrong type: 4xx or a rejection, never stored", async () => {
    for (const bad of [
      op("$rename", "n", "m"),
      op("$inc", "n", "1"),
      op("$inc", "n"),
      op("$set", "", 5),
      op("$set", "", [1]),
      op("$push", "t", 1),
      op("", "n", 1),
    ]) {
      const id = await world.record({ n: 1 });
      const reply = await world.client.request("POST", `${world.items.path}/modify`, {
        body: { ...world.items.target, records: [{ id, ops: [bad] }] },
      });
      const refused = reply.status === 400 || (reply.json as unknown as WriteResult).rejections?.length === 1;
      expect([bad, refused]).toEqual([bad, true]);
      expect(content(await world.items.find(id))).toEqual({ id, n: 1 });
    }
  });

  rule("[DATA-6] a dataset that no type of the object declares is dataset.validation", async () => {
    const other = await createCollection(world.client, world.items.spaceId);
    const body = { objectId: world.items.objectId, dataset: other.dataset, records: [setFields("a", { n: 1 })] };
    await world.client.fails("POST", `${world.items.path}/modify`, body, 400, "dataset.validation");
  });

  rule("[TYPE-3] an undeclared key of a dataset that is not dynamic is never stored", async () => {
    const closed = await createCollection(world.client, world.items.spaceId);
    const body = { ...closed.target, records: [setFields("a", { n: 1, surprise: 1 })] };
    const reply = await world.client.request("POST", `${closed.path}/modify`, { body });
    expect(reply.status < 500).toBe(true);
    expect((await closed.find("a")) ?? {}).not.toHaveProperty("surprise");
  });
});
