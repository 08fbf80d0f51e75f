/** `POST {S}/delete-records`: what is deleted stays deleted. */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import { type Collection, createCollection, createSpace, setFields } from "../support/server/fixtures.ts";
import { runScenarios } from "../support/server/scenario.ts";
import { createWriteOnce, rowsOf } from "../support/worlds/items.ts";

let items: Collection;
const shared = useServer({}, async ({ client }) => {
  const space = await createSpace(client);
  items = await createCollection(client, space.id);
});
const fresh = () => createWriteOnce(shared.client, items.spaceId);

describe("delete-records", () => {
  rule(
    "[DATA-9] deleted records never appear in queries again; deleting again is a no-op without rejection",
    async () => {
      const set = await fresh();
      await set.upsert(rowsOf(5, (i) => ({ n: i })));
      const result = await set.deleteRecords(["r1", "r3"]);
      expect(result).toMatchObject({ recordIds: ["r1", "r3"] });
      expect(result.changeId).toBe(result.versionId);
      expect((await set.query({ sort: ["id"], includeTotal: true })).records.map((row) => row.id)).toEqual([
        "r0",
        "r2",
        "r4",
      ]);
      expect((await set.query({ includeTotal: true })).total).toBe(3);
      expect(await set.deleteRecords(["r1"])).not.toHaveProperty("rejections");
    },
  );

  rule("[DATA-9] an absent id gets a tombstone: it can never be created afterwards", async () => {
    const set = await fresh();
    await set.deleteRecords(["future"]);
    const result = await set.modify([setFields("future", { n: 1 })]);
    expect(result.rejections).toMatchObject([{ recordIndex: 0, opIndex: -1 }]);
    expect(await set.find("future")).toBeUndefined();
  });

  runScenarios(
    () => ({ client: shared.client, vars: { S: items.path, objectId: items.objectId, dataset: items.dataset } }),
    [
      ...(["objectId", "recordIds"] as const).map((field) => ({
        title: `[API-1] a missing ${field} is request.missing_field`,
        method: "POST",
        path: "{S}/delete-records",
        body: Object.fromEntries(
          Object.entries({ objectId: "{objectId}", dataset: "{dataset}", recordIds: ["a"] }).filter(
            ([key]) => key !== field,
          ),
        ),
        status: 400,
        code: "request.missing_field",
        details: { field },
      })),
      {
        title: "[API-1] recordIds that are no strings are request.schema",
        method: "POST",
        path: "{S}/delete-records",
        body: { objectId: "{objectId}", dataset: "{dataset}", recordIds: [5] },
        status: 400,
        code: "request.schema",
      },
      {
        title: "[API-19] delete-records of an unknown object",
        method: "POST",
        path: "{S}/delete-records",
        body: { objectId: "bafyunknown", dataset: "{dataset}", recordIds: ["a"] },
        status: 404,
        code: "object.not_found",
      },
    ],
  );
});
