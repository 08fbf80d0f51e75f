/** Version history over HTTP: listing, filters, coalescing, views, record views, diffs and what they refuse. */
import { describe, expect } from "bun:test";
import type {
  HistoryChange,
  HistoryDiff,
  HistoryPage,
  HistoryRecord,
  HistoryView,
} from "../../src/protocol/history.ts";
import { rule, useServer } from "../support/rule.ts";
import type { JsonObject } from "../support/server/client.ts";
import { type Collection, createCollection, createObject, createSpace, setFields } from "../support/server/fixtures.ts";
import { runScenarios } from "../support/server/scenario.ts";

let spaceId: string;
let items: Collection;
let path: string;
const vars: Record<string, string> = {};
/** Versions in the order in which they were written. */
const versions: string[] = [];

const shared = useServer({}, async ({ client }) => {
  spaceId = (await createSpace(client)).id;
  items = await createCollection(client, spaceId);
  path = `${items.path}/objects/${items.objectId}/history`;
  const write = async (records: JsonObject[], more: JsonObject = {}) =>
    versions.push((await items.modify(records, more)).changeId);
  await write([setFields("a", { s: "one", n: 1, o: { x: 1, y: 2 } })]);
  await write([{ id: "a", ops: [{ type: "$inc", path: "n", value: 4 }] }], { traceIds: ["trace-1", "trace-2"] });
  await write([setFields("b", { s: "b", t: [1, 2] }), { id: "a", ops: [{ type: "$unset", path: "o.x" }] }]);
  versions.push((await items.deleteRecords(["b"])).changeId);
  Object.assign(vars, {
    path,
    dataset: items.dataset,
    first: versions[0],
    last: versions[3],
    objectId: items.objectId,
    spacePath: items.path,
    other: (await createObject(client, spaceId)).versionId,
  });
});

const list = (query = ""): Promise<HistoryPage> => shared.client.get<HistoryPage>(`${path}${query}`);
const ofItems = (query = ""): Promise<HistoryPage> => list(`?dataset=${items.dataset}${query}`);
const versionsOf = (changes: readonly HistoryChange[]): string[] => changes.map((change) => change.version);

describe("list", () => {
  rule("[HIST-1] changes come newest first, with author, time, dataset, traces and what they touched", async () => {
    const { changes, cursor } = await ofItems();
    const account = await shared.client.get<{ id: string }>("/v1/account");
    expect(cursor).toBeUndefined();
    expect(versionsOf(changes)).toEqual(versions.toReversed());
    for (const change of [changes[0]!, changes[1]!, changes[3]!]) expect(change).not.toHaveProperty("traceIds");
    expect(changes[2]).toEqual({
      version: versions[1]!,
      author: account.id,
      timestamp: expect.any(Number),
      dataset: items.dataset,
      traceIds: ["trace-1", "trace-2"],
      touched: [{ dataset: items.dataset, recordId: "a", ops: [{ type: "$inc", path: "n", value: 4 }] }],
      groupSize: 1,
    });
    expect(Math.abs(changes[2]!.timestamp - Date.now() / 1000)).toBeLessThan(600);
    expect(changes[1]!.touched!.map((touch) => touch.recordId)).toEqual(["b", "a"]);
    expect(changes[0]!.touched).toEqual([
      { dataset: items.dataset, recordId: "b", ops: [{ type: "$unset", path: "" }] },
    ]);
  });

  rule("[HIST-1] the change that made the object is the oldest, in the collection of objects", async () => {
    const { changes } = await list();
    expect(changes).toHaveLength(5);
    expect(changes[4]).toMatchObject({ dataset: "objects", touched: [{ recordId: items.objectId }] });
  });

  rule("[HIST-1] pages follow each other by an opaque cursor that new writes do not disturb", async () => {
    const own = await createCollection(shared.client, spaceId);
    const written: string[] = [];
    for (let i = 0; i < 7; i++) written.push((await own.modify([setFields("r", { n: i })])).changeId);
    const at = `${own.path}/objects/${own.objectId}/history?dataset=${own.dataset}&limit=3`;
    const seen: string[] = [];
    for (let cursor = ""; ; ) {
      const page = await shared.client.get<HistoryPage>(cursor === "" ? at : `${at}&cursor=${cursor}`);
      seen.push(...versionsOf(page.changes));
      await own.modify([setFields("r", { n: 100 + seen.length })]);
      if (!page.cursor) break;
      cursor = page.cursor;
    }
    expect(seen).toEqual(written.toReversed());
  });

  rule("[HIST-1] limit defaults to 50 and is clamped to 200", async () => {
    const own = await createCollection(shared.client, spaceId);
    await Promise.all(Array.from({ length: 210 }, (_, i) => own.modify([setFields("r", { n: i })])));
    const at = `${own.path}/objects/${own.objectId}/history`;
    for (const [query, count] of [
      ["", 50],
      ["?limit=0", 50],
      ["?limit=1", 1],
      ["?limit=100000", 200],
    ] as const) {
      expect((await shared.client.get<HistoryPage>(`${at}${query}`)).changes).toHaveLength(count);
    }
  });

  rule("[HIST-1] filters: record, trace, author; what names nothing lists nothing", async () => {
    expect(versionsOf((await ofItems("&recordId=b")).changes)).toEqual([versions[3]!, versions[2]!]);
    expect(versionsOf((await list("?traceId=trace-2")).changes)).toEqual([versions[1]!]);
    const account = await shared.client.get<{ id: string }>("/v1/account");
    expect((await list(`?author=${account.id}`)).changes).toHaveLength(5);
    for (const query of ["?author=nobody", "?traceId=trace", "?dataset=none", `?dataset=${items.dataset}&recordId=z`])
      expect(await list(query)).toEqual({ changes: [] });
  });

  rule("[HIST-1] coalesce joins one author's consecutive changes into their newest", async () => {
    const { changes } = await list("?coalesce=true");
    expect(changes).toHaveLength(1);
    expect(changes[0]).toMatchObject({ version: versions[3]!, groupSize: 5, traceIds: ["trace-1", "trace-2"] });
    expect(changes[0]!.touched!.every((touch) => touch.ops === undefined)).toBe(true);
    expect(changes[0]!.touched!.map((touch) => touch.recordId).toSorted()).toEqual(
      ["a", "b", items.objectId].toSorted(),
    );
    expect((await ofItems("&recordId=b&coalesce=true")).changes).toMatchObject([{ groupSize: 2 }]);
  });

  rule("[HIST-1] chat messages and datasets that opt out do not show, in lists or in views", async () => {
    const chat = await createObject(shared.client, spaceId, { types: ["chat"] });
    const sent = await shared.client.post<{ versionId: string }>(
      `${items.path}/objects/${chat.id}/chat/messages`,
      { text: "hello" },
      201,
    );
    const at = `${items.path}/objects/${chat.id}/history`;
    const { changes } = await shared.client.get<HistoryPage>(at);
    expect(new Set(changes.map((change) => change.dataset))).toEqual(new Set(["objects"]));
    expect(await shared.client.get<HistoryPage>(`${at}?dataset=chat_messages`)).toEqual({ changes: [] });
    const view = await shared.client.get<HistoryView>(`${at}/${sent.versionId}`);
    expect(view.datasets.map(({ dataset }) => dataset)).toEqual(["objects"]);
    expect((await shared.client.get<HistoryView>(`${at}/${sent.versionId}?dataset=chat_messages`)).datasets).toEqual([
      { dataset: "chat_messages", records: [] },
    ]);
    const silent = await createCollection(shared.client, spaceId, { skipHistory: true } as object);
    const { changeId } = await silent.modify([setFields("a", { n: 1 })]);
    const of = `${silent.path}/objects/${silent.objectId}/history`;
    expect((await shared.client.get<HistoryPage>(of)).changes.map(({ dataset }) => dataset)).toEqual(["objects"]);
    const { datasets } = await shared.client.get<HistoryView>(`${of}/${changeId}`);
    expect(datasets.map(({ dataset }) => dataset)).toEqual(["objects"]);
  });
});

describe("views", () => {
  rule("[HIST-2] a view holds the records of its version, by dataset, with the tombstones", async () => {
    const early = await shared.client.get<HistoryView>(`${path}/${versions[1]}`);
    expect(early.version).toBe(versions[1]!);
    expect(early.datasets.map(({ dataset }) => dataset)).toEqual([items.dataset, "objects"].toSorted());
    expect(early.datasets.find(({ dataset }) => dataset === items.dataset)!.records).toMatchObject([
      { id: "a", s: "one", n: 5, o: { x: 1, y: 2 } },
    ]);
    const late = await shared.client.get<HistoryView>(`${path}/${versions[3]}?dataset=${items.dataset}`);
    expect(late.datasets).toHaveLength(1);
    expect(late.datasets[0]!.records).toMatchObject([
      { id: "a", n: 5, o: { y: 2 } },
      { id: "b", _deletedAt: { $date: expect.any(String) }, _ver: { id: expect.any(String) } },
    ]);
    expect(late.datasets[0]!.records[0]).toEqual((await items.find("a"))!);
  });

  rule("[HIST-2] a version is also named by the text that _ver holds", async () => {
    const text = ((await items.find("a"))!["_ver"] as JsonObject)["n"] as string;
    const view = await shared.client.get<HistoryView>(`${path}/${text}?dataset=${items.dataset}`);
    expect(view.version).toBe(versions[1]!);
  });

  rule("[HIST-2] the object's own id is the version before everything", async () => {
    expect(await shared.client.get<HistoryView>(`${path}/${items.objectId}`)).toEqual({
      version: items.objectId,
      datasets: [],
    });
  });

  rule("[HIST-2] a record's view says whether it was there and whether it was deleted", async () => {
    const at = (version: string, id: string) =>
      shared.client.get<HistoryRecord>(`${path}/${version}/datasets/${items.dataset}/records/${id}`);
    const common = (version: string, recordId: string) => ({ version, dataset: items.dataset, recordId });
    expect(await at(versions[1]!, "b")).toEqual({ ...common(versions[1]!, "b"), exists: false });
    expect(await at(versions[2]!, "b")).toMatchObject({ exists: true, record: { id: "b", s: "b", t: [1, 2] } });
    expect(await at(versions[2]!, "b")).not.toHaveProperty("deleted");
    expect(await at(versions[3]!, "b")).toMatchObject({ exists: true, deleted: true, record: { id: "b" } });
    expect(await at(versions[3]!, "zz")).toEqual({ ...common(versions[3]!, "zz"), exists: false });
  });
});

describe("diff", () => {
  const diff = (query: string): Promise<HistoryDiff> => shared.client.get<HistoryDiff>(`${path}/diff?${query}`);

  rule("[HIST-3] without a base: what the version did", async () => {
    expect(await diff(`version=${versions[2]}`)).toEqual({
      version: versions[2]!,
      datasets: [
        {
          dataset: items.dataset,
          records: [
            { id: "a", kind: "changed", fields: [{ path: ["o", "x"], before: 1 }] },
            {
              id: "b",
              kind: "added",
              fields: [
                { path: ["s"], after: "b" },
                { path: ["t"], after: [1, 2] },
              ],
            },
          ],
        },
      ],
    });
    expect((await diff(`version=${versions[3]}`)).datasets[0]!.records).toMatchObject([{ id: "b", kind: "deleted" }]);
  });

  rule("[HIST-3] with a base, either way; equal versions differ in nothing", async () => {
    expect(await diff(`version=${versions[1]}&base=${versions[0]}`)).toEqual({
      base: versions[0]!,
      version: versions[1]!,
      datasets: [
        {
          dataset: items.dataset,
          records: [{ id: "a", kind: "changed", fields: [{ path: ["n"], before: 1, after: 5 }] }],
        },
      ],
    });
    const back = await diff(`version=${versions[0]}&base=${versions[3]}`);
    expect(back.datasets[0]!.records).toEqual([
      {
        id: "a",
        kind: "changed",
        fields: [
          { path: ["n"], before: 5, after: 1 },
          { path: ["o", "x"], after: 1 },
        ],
      },
    ]);
    expect((await diff(`version=${versions[0]}&base=${versions[0]}`)).datasets).toEqual([]);
  });

  rule("[HIST-3] dataset and recordIds narrow it", async () => {
    const query = `version=${versions[2]}&base=${items.objectId}`;
    const all = await diff(query);
    expect(all.datasets.map(({ dataset }) => dataset)).toEqual([items.dataset, "objects"].toSorted());
    const narrow = await diff(`${query}&dataset=${items.dataset}&recordIds=b,none`);
    expect(narrow.datasets).toMatchObject([{ dataset: items.dataset, records: [{ id: "b", kind: "added" }] }]);
    expect((await diff(`${query}&dataset=none`)).datasets).toEqual([]);
  });
});

describe("refusals", () => {
  const missing = "bafyreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku";
  const get = { method: "GET" } as const;
  const notFound = { status: 404, code: "history.version_not_found" } as const;
  const refused = { status: 400, code: "request.invalid_field" } as const;
  runScenarios(
    () => ({ client: shared.client, vars }),
    [
      {
        ...get,
        title: "[HIST-2] an unknown version",
        path: `{path}/${missing}`,
        ...notFound,
        details: { version: missing },
      },
      { ...get, title: "[HIST-2] a text that is no version", path: "{path}/none", ...notFound },
      { ...get, title: "[HIST-2] another object's version", path: "{path}/{other}", ...notFound },
      {
        ...get,
        title: "[HIST-2] an unknown version's record",
        path: `{path}/${missing}/datasets/x/records/y`,
        ...notFound,
      },
      { ...get, title: "[HIST-2] an unknown version in a diff", path: `{path}/diff?version=${missing}`, ...notFound },
      { ...get, title: "[HIST-2] an unknown base", path: `{path}/diff?version={first}&base=none`, ...notFound },
      {
        ...get,
        title: "[API-5] a diff without a version",
        path: "{path}/diff",
        status: 400,
        code: "request.missing_field",
        details: { field: "version" },
      },
      {
        ...get,
        title: "[API-5] a diff with an empty version",
        path: "{path}/diff?version=",
        status: 400,
        code: "request.missing_field",
        details: { field: "version" },
      },
      {
        ...get,
        title: "[API-5] recordId without dataset",
        path: "{path}?recordId=a",
        ...refused,
        details: { field: "recordId" },
      },
      {
        ...get,
        title: "[API-5] recordIds without dataset",
        path: "{path}/diff?version={first}&recordIds=a",
        ...refused,
        details: { field: "recordIds" },
      },
      { ...get, title: "[API-5] a bent cursor", path: "{path}?cursor=abc", ...refused, details: { field: "cursor" } },
      {
        ...get,
        title: "[API-5] a window of more than a day",
        path: "{path}?coalesceWindow=86401",
        ...refused,
        details: { field: "coalesceWindow" },
      },
      {
        ...get,
        title: "[API-5] a limit that is no number",
        path: "{path}?limit=many",
        ...refused,
        details: { field: "limit" },
      },
      {
        ...get,
        title: "[API-19] an unknown object",
        path: `{spacePath}/objects/${missing}/history`,
        status: 404,
        code: "object.not_found",
      },
    ],
  );

  rule("[HIST-1] a deleted object has none", async () => {
    const object = await createObject(shared.client, spaceId);
    await shared.client.del(`${items.path}/objects/${object.id}`, 204);
    const at = `${items.path}/objects/${object.id}/history`;
    for (const end of ["", `/${object.versionId}`, `/diff?version=${object.versionId}`])
      await shared.client.fails("GET", `${at}${end}`, undefined, 404, "object.not_found");
  });

  rule("[HIST-4] a view of more than 10,000 records is 413 and can be narrowed", async () => {
    const own = await createCollection(shared.client, spaceId);
    for (let part = 0; part < 3; part++) {
      await own.upsert(
        Array.from({ length: 3400 }, (_, i) => ({ id: `r${part * 3400 + i}`, fields: { n: i } })),
        { pageSize: 3400 },
      );
    }
    const at = `${own.path}/objects/${own.objectId}/history`;
    const { changes } = await shared.client.get<HistoryPage>(`${at}?dataset=${own.dataset}`);
    const [newest, , oldest] = versionsOf(changes);
    await shared.client.fails("GET", `${at}/${newest}`, undefined, 413, "history.view_too_large");
    await shared.client.fails(
      "GET",
      `${at}/diff?version=${newest}&base=${own.objectId}`,
      undefined,
      413,
      "history.view_too_large",
    );
    expect((await shared.client.get<HistoryView>(`${at}/${newest}?dataset=objects`)).datasets[0]!.records).toHaveLength(
      1,
    );
    expect(
      (await shared.client.get<HistoryView>(`${at}/${oldest}?dataset=${own.dataset}`)).datasets[0]!.records,
    ).toHaveLength(3400);
    const record = await shared.client.get<HistoryRecord>(`${at}/${newest}/datasets/${own.dataset}/records/r9999`);
    expect(record.exists).toBe(true);
  });
});
