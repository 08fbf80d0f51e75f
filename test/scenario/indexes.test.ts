/** Indexes nobody asks for: they come with use, change no answer, and are told of in explain and the debug log. */
import { expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { JsonObject } from "../support/server/client.ts";
import { until } from "../support/server/client.ts";
import { type Collection, createCollection, createSpace } from "../support/server/fixtures.ts";

const ROWS = 2_600;
let tasks: Collection;

const shared = useServer({ args: ["--log-level", "debug"] }, async ({ client }) => {
  const space = await createSpace(client);
  tasks = await createCollection(client, space.id, { dynamic: true });
  for (let first = 0; first < ROWS; first += 500)
    await tasks.upsert(
      Array.from({ length: Math.min(500, ROWS - first) }, (_, k) => ({
        id: `t${String(first + k).padStart(5, "0")}`,
        fields: {
          s: `owner-${(first + k) % 700}`,
          n: (first + k) % 97,
          t: [`tag-${(first + k) % 900}`],
          free: first + k,
        },
      })),
    );
});

const ids = (page: { records: JsonObject[] }) => page.records.map((row) => row["id"]);
const explain = async (pipeline: JsonObject[]): Promise<string> => {
  const body = { ...tasks.target, pipeline, explain: true };
  return (await shared.client.post<{ plan: string }>(`${tasks.path}/aggregate`, body)).plan;
};

/** Waits until the plan of a pipeline says what it should. */
async function untilPlan(pipeline: JsonObject[], part: string): Promise<void> {
  await until(async () => (await explain(pipeline)).includes(part), `the plan to say ${part}`, 20_000);
}

rule(
  "[INDEX-2] [INDEX-1] [INDEX-6] a declared field that a query filters by gets an index; the answer stays the same",
  async () => {
    const body = { filter: { s: "owner-77" }, sort: ["-free"], includeTotal: true };
    const before = await tasks.query(body);
    expect(before.total).toBe(4);
    await untilPlan([{ $match: { s: "owner-77" } }], "index on s");
    expect(await tasks.query(body)).toEqual(before);
    const line = shared.server
      .stderr()
      .split("\n")
      .findLast((each) => each.includes(" query ") && each.includes("index=s"));
    expect(line).toContain("candidates=4");
    expect(line).toContain("matches=4");
  },
);

rule("[INDEX-1] what is written after an index was made is found by it, what is deleted is not", async () => {
  const filter = { s: "owner-5" };
  const before = ids(await tasks.query({ filter }));
  await tasks.upsert([{ id: "zz-new", fields: { s: "owner-5", free: 1 } }]);
  await tasks.modify([{ id: before[0] as string, ops: [{ type: "$set", path: "s", value: "nobody" }] }]);
  await tasks.deleteRecords([before[1] as string]);
  expect(ids(await tasks.query({ filter }))).toEqual([...before.slice(2), "zz-new"]);
});

rule("[INDEX-2] [INDEX-1] an array's elements are found by an index", async () => {
  const body = { filter: { t: "tag-31" } };
  const before = await tasks.query(body);
  expect(before.records.length).toBeGreaterThan(1);
  await untilPlan([{ $match: { t: "tag-31" } }], "index on t");
  expect(await tasks.query(body)).toEqual(before);
});

rule("[INDEX-2] [INDEX-1] an undeclared path gets its index when it is used again", async () => {
  const body = { filter: { free: { $gte: 2_590 } } };
  await tasks.query(body);
  expect(await explain([{ $match: body.filter }])).not.toContain("index on free");
  const before = await tasks.query(body);
  await untilPlan([{ $match: body.filter }], "index on free");
  expect(await tasks.query(body)).toEqual(before);
});

rule("[INDEX-2] a sort of windows and a group that counts get theirs", async () => {
  const page = { sort: ["-n"], limit: 5 };
  const before = await tasks.query(page);
  await untilPlan([{ $sort: { n: -1 } }, { $limit: 5 }], "index on n in the order of the sort");
  expect(await tasks.query(page)).toEqual(before);
  await untilPlan([{ $group: { _id: "$n", count: { $sum: 1 } } }], "counted over the index on n");
});
