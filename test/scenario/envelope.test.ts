/**
 * Which 400: bad_json, then schema, then unknown_field, then missing_field, then invalid_field, in that order, on
 * every strict endpoint of the OpenAPI document; and the shape of the envelope itself (client.ts checks it on every
 * failed request of every suite).
 */
import { describe, expect } from "bun:test";
import {
  asList,
  asObject,
  fillPath,
  isStrict,
  loadDocument,
  type Operation,
  resolveRef,
} from "../support/api/openapi.ts";
import { createPathValues, type PathValues } from "../support/path-values.ts";
import { rule, useServer } from "../support/rule.ts";
import type { Client, Json, JsonObject } from "../support/server/client.ts";
import { envelopeOf } from "../support/server/client.ts";
import { runScenarios } from "../support/server/scenario.ts";

let paths: PathValues;
const shared = useServer({}, async (server) => {
  paths = await createPathValues(server.client);
});

/** Operations whose body rules can be tested: real ids for the path, and nothing that would end the server. */
async function bodyOperations(strictOnly: boolean): Promise<{ operation: Operation; root: JsonObject }[]> {
  const { operations, root } = await loadDocument(shared.client);
  return operations
    .filter((operation) => operation.body !== undefined && operation.path !== "/v1/shutdown")
    .filter((operation) => !operation.path.startsWith("/v1/auth"))
    .filter((operation) => paths.covers(operation.path) && (!strictOnly || isStrict(operation)))
    .map((operation) => ({ operation, root }));
}

async function codeOf(client: Client, operation: Operation, raw: string): Promise<string> {
  const path = fillPath(operation.path, paths.values);
  const reply = await client.request(operation.method, path, { raw, headers: { "Content-Type": "application/json" } });
  if (reply.status < 400) return String(reply.status);
  return `${reply.status} ${envelopeOf(reply, `${operation.method} ${path}`).code}`;
}

/** What the given raw body is answered with, for each operation that does not answer as expected. */
async function deviations(
  operations: { operation: Operation }[],
  rawOf: (operation: Operation) => string | undefined,
  expected: string,
): Promise<string[]> {
  const wrong: string[] = [];
  let tried = 0;
  for (const { operation } of operations) {
    const raw = rawOf(operation);
    if (raw === undefined) continue;
    tried++;
    const got = await codeOf(shared.client, operation, raw);
    if (got !== expected) wrong.push(`${operation.method} ${operation.path} ${raw}: ${got}`);
  }
  if (tried === 0) throw new Error("no operation was tried");
  return wrong;
}

/** A property of the body with a declared JSON type, and a value of another type. */
function mistypedProperty(root: JsonObject, operation: Operation): JsonObject | undefined {
  for (const [name, schema] of Object.entries(asObject(operation.body?.["properties"]))) {
    const type = resolveRef(root, schema)["type"];
    if (type === "string") return { [name]: { wrong: true } };
    if (type === "array" || type === "integer" || type === "boolean") return { [name]: { wrong: true } };
  }
  return undefined;
}

describe("order of the 400s", () => {
  rule("[API-1] a body that is not JSON is request.bad_json on every endpoint with a body", async () => {
    const all = await bodyOperations(false);
    for (const raw of ["{", "{'a':1}", '{"a":1}{"b":2}', "nonsense", '{"a":}', '"\u0001"']) {
      expect(await deviations(all, () => raw, "400 request.bad_json")).toEqual([]);
    }
  });

  rule("[API-1] invalid UTF-8 is request.bad_json", async () => {
    const raw = Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]);
    const reply = await shared.client.request("POST", "/v1/spaces", {
      raw: new Uint8Array(raw),
      headers: { "Content-Type": "application/json" },
    });
    expect([reply.status, envelopeOf(reply, "POST").code]).toEqual([400, "request.bad_json"]);
  });

  rule("[API-1] JSON that is no object is request.schema on every endpoint with a body", async () => {
    const all = await bodyOperations(false);
    for (const raw of ["[]", "5", '"text"', "true", "null"]) {
      expect(await deviations(all, () => raw, "400 request.schema")).toEqual([]);
    }
  });

  rule("[API-1] a wrong JSON type wins over an unknown key and over missing ones", async () => {
    const all = await bodyOperations(true);
    const root = all[0]!.root;
    expect(
      await deviations(
        all,
        (operation) => {
          const mistyped = mistypedProperty(root, operation);
          return mistyped && JSON.stringify({ zzz: 1, ...mistyped });
        },
        "400 request.schema",
      ),
    ).toEqual([]);
  });

  rule("[API-1] an unknown key wins over missing ones on every strict endpoint", async () => {
    const strict = await bodyOperations(true);
    expect(await deviations(strict, () => JSON.stringify({ zzz: 1 }), "400 request.unknown_field")).toEqual([]);
  });

  rule("[API-1] details carry fields and accepted, and accepted is the documented set", async () => {
    for (const { operation } of await bodyOperations(true)) {
      const path = fillPath(operation.path, paths.values);
      const error = await shared.client.fails(
        operation.method,
        path,
        { zzz: 1, yyy: null },
        400,
        "request.unknown_field",
      );
      const accepted = Object.keys(asObject(operation.body?.["properties"])).sort();
      const details = error.details!;
      expect([path, asList(details["fields"]).map(String).sort()]).toEqual([path, ["yyy", "zzz"]]);
      expect([path, asList(details["accepted"]).map(String).sort()]).toEqual([path, accepted]);
    }
  });

  rule("[API-1] an empty body lacks the required fields: details.field names one of them", async () => {
    let tried = 0;
    for (const { operation } of await bodyOperations(true)) {
      const required = asList(operation.body?.["required"]);
      if (required.length === 0) continue;
      if (operation.path.endsWith("/types") && operation.method === "POST") continue; // has its own code: type.xkey_required
      tried++;
      const path = fillPath(operation.path, paths.values);
      const error = await shared.client.fails(operation.method, path, {}, 400, "request.missing_field");
      expect(required).toContain(error.details?.["field"] as Json);
    }
    expect(tried).toBeGreaterThan(0);
  });

  rule("[API-1] an absent body is {} on strict endpoints", async () => {
    for (const { operation } of await bodyOperations(true)) {
      if (!/\/(query|metadata|settings|query\/subscribe)$/.test(operation.path)) continue;
      if (operation.path.endsWith("/subscribe")) continue;
      const path = fillPath(operation.path, paths.values);
      const [absent, empty] = [
        await shared.client.request(operation.method, path),
        await shared.client.request(operation.method, path, { body: {} }),
      ];
      expect([path, absent.status]).toEqual([path, empty.status]);
    }
  });
});

describe("details", () => {
  runScenarios(
    () => ({ client: shared.client, vars: { ...paths.values, S: paths.items.path, dataset: paths.items.dataset } }),
    [
      {
        title: "[API-1] details name path and expected type",
        method: "POST",
        path: "/v1/spaces",
        body: { name: 5 },
        status: 400,
        code: "request.schema",
        details: { path: "name" },
        mustContain: ["string"],
      },
      {
        title: "[API-1] the path of a nested fault is dotted with indexes",
        method: "POST",
        path: "{S}/modify",
        body: { objectId: "{objectId}", dataset: "d", records: [{ id: "a", ops: [{ type: "$set", path: 5 }] }] },
        status: 400,
        code: "request.schema",
        details: { path: "records[0].ops[0].path" },
      },
      {
        title: "[API-1] the message names a key that is not taken below the top",
        method: "POST",
        path: "{S}/objects",
        body: { nav: { folder: true } },
        status: 400,
        code: "request.schema",
        details: { path: "nav.folder" },
        mustContain: ['"message":"nav.folder'],
      },
      {
        title: "[API-1] the message names a __proto__ key below the top",
        method: "PATCH",
        path: "{S}/settings",
        raw: '{"set":{"__proto__":"x"}}',
        status: 400,
        code: "request.schema",
        details: { path: "set.__proto__" },
        mustContain: ['"message":"set.__proto__'],
      },
      {
        title: "[API-5] the message names a path segment that is no percent-encoding",
        method: "GET",
        path: "/v1/spaces/%E0%A4%A",
        status: 400,
        code: "request.invalid_field",
        details: { field: "spaceId" },
        mustContain: ['"message":"spaceId'],
      },
      {
        title: "[API-1] details name field and reason",
        method: "POST",
        path: "/v1/spaces",
        body: { spaceType: "svc.onetoone" },
        status: 400,
        code: "request.invalid_field",
        details: { spaceType: "svc.onetoone" },
      },
      {
        title: "[API-1] a __proto__ key is an unknown key, not dropped and not merged",
        method: "POST",
        path: "/v1/spaces",
        raw: '{"name":"x","__proto__":{"polluted":true}}',
        status: 400,
        code: "request.unknown_field",
        details: { fields: ["__proto__"] },
      },
      {
        title: "[API-1] /modify drops unknown top-level keys instead",
        method: "POST",
        path: "{S}/modify",
        body: { objectId: "{objectId}", dataset: "{dataset}", records: [{ id: "absent", ops: [] }], zzz: 1 },
        status: 200,
        match: { recordIds: ["absent"] },
      },
      {
        title: "[API-6] [API-11] details carry only what the caller supplied: the unknown space id",
        method: "GET",
        path: "/v1/spaces/no-such-space",
        status: 404,
        code: "space.not_found",
        details: { spaceId: "no-such-space" },
      },
    ],
  );

  rule("[API-6] no message or detail carries a path of the data root, SQL or a stack", async () => {
    const { client, server } = shared;
    const texts: string[] = [];
    for (const [method, path, body] of [
      ["GET", "/v1/spaces/../../etc/passwd", undefined],
      ["GET", "/v1/spaces/%2e%2e%2f%2e%2e%2fwallet.key", undefined],
      ["GET", `${paths.items.path}/properties/%00`, undefined],
      ["POST", `${paths.items.path}/query`, { objectId: "'; DROP TABLE rows; --", dataset: "x" }],
      ["POST", `${paths.items.path}/objects/query`, { filter: { "a'b\"c": { $gt: "'" } } }],
    ] as const) {
      const reply = await client.request(method, path, body === undefined ? {} : { body });
      expect([path, reply.status < 500]).toEqual([path, true]);
      texts.push(reply.text);
    }
    for (const text of texts) {
      expect(text).not.toContain(server.dataDir);
      expect(text).not.toMatch(/SQLITE|SELECT |node_modules|\.ts:\d/);
    }
  });
});
