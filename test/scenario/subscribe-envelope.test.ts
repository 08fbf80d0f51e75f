/** A windowed subscription's stream: its head, its first frames, what keeps it alive, what is refused. */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { JsonObject } from "../support/server/client.ts";
import { until } from "../support/server/client.ts";
import { type Collection, createSpace, setFields } from "../support/server/fixtures.ts";
import { runScenarios } from "../support/server/scenario.ts";
import { createNumbered, idsOf, subscribeTo } from "../support/window.ts";

let spaceId: string;
const shared = useServer({}, async ({ client }) => {
  spaceId = (await createSpace(client)).id;
});

const fresh = (count = 0) => createNumbered(shared.client, spaceId, count);
const subscribe = (items: Collection, body?: JsonObject) => subscribeTo(shared.client, items, body);

describe("envelope", () => {
  rule("[LIVE-1] text/event-stream, ready with {}, then the snapshot, once", async () => {
    const items = await fresh(3);
    await using stream = await subscribe(items, { sort: ["n"] });
    expect(stream.headers.get("content-type")).toStartWith("text/event-stream");
    expect(stream.headers.get("cache-control") ?? "").toMatch(/no-(cache|store)/);
    const snapshot = await stream.snapshot();
    expect(idsOf(snapshot.records)).toEqual(["r0", "r1", "r2"]);
    expect(Object.keys(snapshot)).toEqual(["records"]);
    expect(snapshot.records).toEqual((await items.query({ sort: ["n"] })).records);
    await items.modify([setFields("r0", { s: "told next" })]);
    await stream.changes();
    expect(stream.rawText()).not.toMatch(/^id:/m);
  });

  rule("[LIVE-2] includeTotal adds total and hasNext to the snapshot", async () => {
    const items = await fresh(5);
    await using stream = await subscribe(items, { sort: ["n"], limit: 2, includeTotal: true });
    expect(await stream.snapshot()).toMatchObject({ records: [{ id: "r0" }, { id: "r1" }], total: 5, hasNext: true });
  });

  rule(
    "[LIVE-1] an idle stream is kept alive by comments, about every 25 s",
    async () => {
      const items = await fresh();
      await using stream = await subscribe(items);
      await stream.snapshot();
      await until(() => stream.rawText().includes(": keepalive"), "a comment", 40_000, 250);
      await items.modify([setFields("after", { n: 1 })]);
      expect(idsOf((await stream.changes())[0]!.added)).toEqual(["after"]);
    },
    60_000,
  );

  runScenarios(
    () => ({ client: shared.client, vars: { S: `/v1/spaces/${spaceId}` } }),
    [
      {
        title: "[LIVE-1] errors before the stream opens are the JSON envelope: an unknown object",
        method: "POST",
        path: "{S}/query/subscribe",
        body: { objectId: "bafyunknown", dataset: "x" },
        status: 404,
        code: "object.not_found",
      },
      {
        title: "[LIVE-3] limit needs a sort",
        method: "POST",
        path: "{S}/objects/query/subscribe",
        body: { limit: 5 },
        status: 400,
        code: "request.missing_field",
        details: { field: "sort" },
      },
      {
        title: "[LIVE-4] mailboxCapacity below 16 is request.invalid_field",
        method: "POST",
        path: "{S}/objects/query/subscribe",
        body: { mailboxCapacity: 15 },
        status: 400,
        code: "request.invalid_field",
        details: { field: "mailboxCapacity" },
      },
      {
        title: "[API-1] an unknown key is request.unknown_field",
        method: "POST",
        path: "{S}/objects/query/subscribe",
        body: { cursor: "x" },
        status: 400,
        code: "request.unknown_field",
        mustContain: ["mailboxCapacity", "driftBudgetPercent"],
      },
      {
        title: "[LIVE-1] a windowed stream is a POST",
        method: "GET",
        path: "{S}/objects/query/subscribe",
        status: 405,
        code: "request.method_not_allowed",
      },
    ],
  );
});
