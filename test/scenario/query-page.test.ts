/** Sort, limit, offset and totals; the body of a snapshot query. */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { Json, JsonObject } from "../support/server/client.ts";
import { type Collection, createCollection, createSpace, setFields } from "../support/server/fixtures.ts";
import { runScenarios } from "../support/server/scenario.ts";

let items: Collection;
let mixed: Collection;
/** In ascending order of `v`, ties by id. */
const ASCENDING: [string, JsonObject][] = [
  ["empty-array", { v: [] }],
  ["missing", {}],
  ["null", { v: null }],
  ["minus", { v: -3 }],
  ["array-low", { v: [-2, 50] }],
  ["a-one", { v: 1 }],
  ["b-one", { v: 1 }],
  ["two", { v: 2 }],
  ["text-empty", { v: "" }],
  ["text-A", { v: "A" }],
  ["text-a", { v: "a" }],
  ["text-bmp", { v: "\uFFFD" }],
  ["text-astral", { v: "\u{1F9ED}" }],
  ["object", { v: { a: 1 } }],
  ["false", { v: false }],
  ["true", { v: true }],
  ["date-1", { v: { $date: "2026-01-31T00:00:00.000Z" } }],
  ["date-2", { v: { $date: "2026-02-01T00:00:00.000Z" } }],
];

const shared = useServer({}, async ({ client }) => {
  const space = await createSpace(client);
  items = await createCollection(client, space.id);
  await items.upsert(
    Array.from({ length: 25 }, (_, i) => ({ id: `r${String(i).padStart(2, "0")}`, fields: { n: i % 5, s: `s${i}` } })),
  );
  mixed = await createCollection(client, space.id, { dynamic: true, fields: [] });
  await mixed.upsert([...ASCENDING].reverse().map(([id, fields]) => ({ id, fields })));
});

const ids = (page: { records: { id: string }[] }): string[] => page.records.map((row) => row.id);

describe("sort", () => {
  rule("[QUERY-3] ascending order over mixed types, ties by id", async () => {
    expect(ids(await mixed.query({ sort: ["v"] }))).toEqual(ASCENDING.map(([id]) => id));
  });

  rule("[QUERY-3] descending: arrays sort by their greatest element, ties still by id ascending", async () => {
    const descending = ids(await mixed.query({ sort: ["-v"] }));
    const expected = [
      "date-2",
      "date-1",
      "true",
      "false",
      "object",
      "text-astral",
      "text-bmp",
      "text-a",
      "text-A",
      "text-empty",
      "array-low",
      "two",
      "a-one",
      "b-one",
      "minus",
      "missing",
      "null",
      "empty-array",
    ];
    expect(descending).toEqual(expected);
  });

  rule("[QUERY-3] several keys, each with its own direction", async () => {
    const page = await items.query({ sort: ["-n", "s"] });
    const key = (row: JsonObject): [number, string] => [-(row["n"] as number), row["s"] as string];
    const sorted = [...page.records].sort((a, b) => {
      const [[an, as], [bn, bs]] = [key(a), key(b)];
      return an - bn || (as < bs ? -1 : as > bs ? 1 : 0);
    });
    expect(ids(page)).toEqual(sorted.map((row) => row.id));
  });

  rule("[QUERY-4] without a sort the order is stable from call to call", async () => {
    expect(ids(await items.query({}))).toEqual(ids(await items.query({})));
  });

  rule("[DATA-8] -_ver.id is newest first", async () => {
    const fresh = await createCollection(shared.client, items.spaceId);
    for (const id of ["first", "third", "second"]) await fresh.modify([setFields(id, { n: 1 })]);
    await fresh.modify([setFields("first", { n: 2 })]); // an edit never moves the creation version
    expect(ids(await fresh.query({ sort: ["-_ver.id"] }))).toEqual(["second", "third", "first"]);
  });

  rule("[QUERY-3] a dotted path", async () => {
    const fresh = await createCollection(shared.client, items.spaceId);
    await fresh.modify([
      setFields("a", { o: { k: 3 } }),
      setFields("b", { o: { k: 1 } }),
      setFields("c", { o: { k: 2 } }),
    ]);
    expect(ids(await fresh.query({ sort: ["o.k"] }))).toEqual(["b", "c", "a"]);
  });
});

describe("paging", () => {
  rule("[QUERY-4] pages with a sort cover everything once, ties included", async () => {
    const seen: string[] = [];
    for (let offset = 0; offset < 30; offset += 7) {
      const page = await items.query({ sort: ["n"], limit: 7, offset, includeTotal: true });
      expect(page.total).toBe(25);
      expect(page.hasNext).toBe(offset + page.records.length < 25);
      seen.push(...ids(page));
    }
    expect(seen).toEqual(ids(await items.query({ sort: ["n"] })));
    expect(new Set(seen).size).toBe(25);
  });

  rule("[QUERY-4] [API-18] limit absent, 0 or negative is unlimited; offset at most 0 is ignored", async () => {
    for (const body of [{}, { limit: 0 }, { limit: -4 }, { offset: 0 }, { offset: -3 }]) {
      expect((await items.query(body)).records).toHaveLength(25);
    }
  });

  rule("[QUERY-4] an offset beyond the end is an empty page with the true total", async () => {
    expect(await items.query({ sort: ["n"], offset: 100, limit: 5, includeTotal: true })).toEqual({
      records: [],
      total: 25,
      hasNext: false,
    });
  });

  rule("[QUERY-4] total counts all matches of the filter, whatever limit and offset are", async () => {
    expect(await items.query({ filter: { n: 2 }, sort: ["s"], limit: 2, includeTotal: true })).toMatchObject({
      total: 5,
      hasNext: true,
    });
  });

  rule("[QUERY-4] total and hasNext appear only with includeTotal: true", async () => {
    for (const body of [{}, { includeTotal: false }]) {
      const page = await items.query({ ...body, limit: 3 });
      expect(Object.keys(page)).toEqual(["records"]);
    }
  });

  rule("[API-18] a reply of more than 256 Ki characters comes without its length, a shorter one with it", async () => {
    const large = await createCollection(shared.client, items.spaceId);
    const fields = { s: "é".repeat(100_000) };
    await large.upsert(["a", "b", "c"].map((id) => ({ id, fields })));
    const ask = (on: Collection) => shared.client.request("POST", `${on.path}/query`, { body: { ...on.target } });
    const [long, short] = [await ask(large), await ask(items)];
    expect([long, short].map(({ headers }) => headers.get("content-length") === null)).toEqual([true, false]);
    expect((long.json as unknown as { records: JsonObject[] }).records).toMatchObject([fields, fields, fields]);
  });

  rule("[QUERY-4] a very large limit and offset are fine", async () => {
    expect((await items.query({ limit: 2_000_000_000 })).records).toHaveLength(25);
    expect((await items.query({ offset: 2_000_000_000 })).records).toEqual([]);
  });
});

describe("bodies", () => {
  const query = (body: JsonObject) => ({
    method: "POST",
    path: "{S}/query",
    body: { objectId: "{objectId}", dataset: "{dataset}", ...body },
  });
  runScenarios(
    () => ({
      client: shared.client,
      vars: { S: items.path, objectId: items.objectId, dataset: items.dataset },
    }),
    [
      {
        title: "[API-1] objectId is required",
        method: "POST",
        path: "{S}/query",
        body: { dataset: "{dataset}" },
        status: 400,
        code: "request.missing_field",
        details: { field: "objectId" },
      },
      {
        title: "[API-1] dataset is required",
        method: "POST",
        path: "{S}/query",
        body: { objectId: "{objectId}" },
        status: 400,
        code: "request.missing_field",
        details: { field: "dataset" },
      },
      {
        title: "[API-1] an unknown key is request.unknown_field with the closed set",
        ...query({ where: {} }),
        status: 400,
        code: "request.unknown_field",
        details: { fields: ["where"] },
        mustContain: ["includeTotal", "projection", "offset"],
      },
      ...(["mailboxCapacity", "driftBudgetPercent"] as const).map((key) => ({
        title: `[API-1] ${key} belongs to subscribe alone`,
        ...query({ [key]: 20 }),
        status: 400,
        code: "request.unknown_field",
        details: { fields: [key] as Json[] },
      })),
      {
        title: "[QUERY-5] projection is accepted and not applied",
        ...query({ projection: { n: 1 }, limit: 1 }),
        status: 200,
        mustContain: ['"s":'],
      },
      {
        title: "[API-1] a sort that is no array is request.schema",
        ...query({ sort: "n" }),
        status: 400,
        code: "request.schema",
        details: { path: "sort" },
      },
      {
        title: "[API-1] a sort entry that is no string is request.schema",
        ...query({ sort: [1] }),
        status: 400,
        code: "request.schema",
      },
      {
        title: "[API-1] a limit that is no integer is request.schema",
        ...query({ limit: "5" }),
        status: 400,
        code: "request.schema",
        details: { path: "limit" },
      },
      {
        title: "[API-1] a fractional limit is request.schema",
        ...query({ limit: 1.5 }),
        status: 400,
        code: "request.schema",
      },
      {
        title: "[API-1] includeTotal that is no boolean is request.schema",
        ...query({ includeTotal: "yes" }),
        status: 400,
        code: "request.schema",
      },
      {
        title: "[QUERY-5] an unknown dataset is an empty page",
        method: "POST",
        path: "{S}/query",
        body: { objectId: "{objectId}", dataset: "nonsense" },
        status: 200,
        match: { records: [] },
      },
      {
        title: "[API-19] an unknown object is 404",
        method: "POST",
        path: "{S}/query",
        body: { objectId: "bafyunknown", dataset: "{dataset}" },
        status: 404,
        code: "object.not_found",
      },
    ],
  );

  rule("[QUERY-7] an empty one is 400 request.invalid_field that names it, everywhere", async () => {
    const bodies: Record<string, JsonObject> = {
      query: {},
      "query/subscribe": {},
      aggregate: { pipeline: [] },
      modify: { records: [] },
      upsert: { records: [] },
      "delete-records": { recordIds: [] },
    };
    for (const [path, more] of Object.entries(bodies)) {
      const body = { objectId: "", dataset: items.dataset, ...more };
      const error = await shared.client.fails("POST", `${items.path}/${path}`, body, 400, "request.invalid_field");
      expect(error.details).toEqual({ field: "objectId", reason: "must not be empty" });
    }
  });

  rule("[API-4] a serialized nil objectId is 400 with field and got, in any case", async () => {
    for (const got of ["none", "None", "null", "nil", "undefined", "UNDEFINED", "<nil>", "[object Object]"]) {
      for (const path of ["query", "query/subscribe", "modify", "upsert"]) {
        const more = path === "modify" || path === "upsert" ? { records: [] } : {};
        const error = await shared.client.fails(
          "POST",
          `${items.path}/${path}`,
          { objectId: got, dataset: items.dataset, ...more },
          400,
          "object.id_required",
        );
        expect(error.details).toMatchObject({ field: "objectId", got });
      }
    }
  });
});
