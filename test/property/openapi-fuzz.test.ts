/**
 * Random valid and invalid requests made from the server's own OpenAPI document. Whatever is sent: never a 500, no
 * stall, and every answer validates against what the document says of its status.
 */
import { describe, expect } from "bun:test";
import SwaggerParser from "@apidevtools/swagger-parser";
import {
  type ApiDocument,
  asList,
  asObject,
  loadDocument,
  type Operation,
  resolveRef,
} from "../support/api/openapi.ts";
import { createResponseCheck } from "../support/api/response-check.ts";
import { HOSTILE_STRINGS, sampleValue, spoil } from "../support/api/schema-sample.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rule, useServer } from "../support/rule.ts";
import type { Client, Json, JsonObject, Reply } from "../support/server/client.ts";
import { clip } from "../support/server/client.ts";
import { createCollection, createObject, createSpace, setFields } from "../support/server/fixtures.ts";

const DEADLINE_MS = 15_000;
const REQUESTS_PER_OPERATION = 36;
/** Of an operation without a path parameter, a query or a body all requests are the same. */
const REQUESTS_ALL_ALIKE = 3;
const seed = runSeed("openapi fuzz");
let document: ApiDocument;
const shared = useServer({}, async ({ client }) => {
  document = await loadDocument(client);
});

/** Seeds that once found a fault, kept by name: the `SEED` that the failing run printed. None has yet. */
const PAST_SEEDS: { name: string; seed: number }[] = [];

describe("document", () => {
  rule("[API-12] the document is valid OpenAPI 3.1", async () => {
    expect(document.root["openapi"]).toMatch(/^3\.1\.\d+$/);
    await SwaggerParser.validate(structuredClone(document.root) as never);
  });

  rule("[API-12] every operation has a summary, documents its success and its errors with the envelope", () => {
    const lacking: string[] = [];
    for (const operation of document.operations) {
      const name = `${operation.method} ${operation.path}`;
      if (typeof operation.raw["summary"] !== "string") lacking.push(`${name}: no summary`);
      const statuses = [...operation.responses.keys()];
      if (!statuses.some((status) => status >= 200 && status < 300)) lacking.push(`${name}: no 2xx`);
      for (const [status, response] of operation.responses) {
        if (status < 400) continue;
        const schema = response.schema === null ? {} : resolveRef(document.root, response.schema);
        if (asObject(schema["properties"])["error"] === undefined)
          lacking.push(`${name}: ${status} is not the envelope`);
      }
      for (const entry of Object.values(asObject(operation.raw["responses"]))) {
        const described = resolveRef(document.root, entry)["description"];
        if (typeof described !== "string" || described === "") lacking.push(`${name}: a response without description`);
      }
    }
    expect(lacking).toEqual([]);
  });

  rule("[API-12] the endpoints of the specification that drop unknown keys are not strict, every other body is", () => {
    const drops = /\/(modify|aggregate)$/;
    const wrong: string[] = [];
    for (const operation of document.operations) {
      if (operation.body === undefined) continue;
      const strict =
        operation.body["additionalProperties"] === false ||
        operation.body["unevaluatedProperties"] === false ||
        asList(operation.body["anyOf"]).length > 0;
      if (strict === drops.test(operation.path)) wrong.push(`${operation.method} ${operation.path}: strict ${strict}`);
    }
    expect(wrong).toEqual([]);
  });

  /**
   * The only places where a response may hold anything: rows of the user's own shape and their values in the history,
   * what the user published, a program's arguments, a dataset's JSON Schema, a property's filter. Keyed by the name of
   * the property that holds it.
   */
  const OPEN_BY_NATURE = new Set("records record doc data args payload schema filter value before after".split(" "));
  /** A whole response that is open: the OpenAPI document, whose schema is OpenAPI's. */
  const OPEN_RESPONSES = new Set(["GET /v1/openapi.json 200"]);

  rule("[API-12] no response schema is open or any, except records, data, args and their like", () => {
    const open: string[] = [];
    for (const operation of document.operations) {
      for (const [status, { schema }] of operation.responses) {
        if (schema === null || OPEN_RESPONSES.has(`${operation.method} ${operation.path} ${status}`)) continue;
        for (const path of openNodes(document.root, schema)) {
          const holder = path.split(".").findLast((segment) => segment !== "[]" && segment !== "*");
          if (holder === undefined || !OPEN_BY_NATURE.has(holder))
            open.push(`${operation.method} ${operation.path} ${status}: ${path || "(all)"}`);
        }
      }
    }
    expect(open).toEqual([]);
  });

  rule("[API-12] nothing in the document points elsewhere than into itself", () => {
    expect(JSON.stringify(document.root).match(/"\$ref":"(?!#\/)[^"]*"/g) ?? []).toEqual([]);
  });
});

/** Dotted paths of the places in a schema that allow anything: `true`, `{}`, objects that are not closed. */
function openNodes(root: JsonObject, schema: Json | undefined, path = "", seen: JsonObject[] = []): string[] {
  if (schema === true || schema === undefined) return [path];
  if (schema === false) return [];
  const node = resolveRef(root, schema);
  if (seen.includes(node)) return [];
  const inner = [...seen, node];
  if (node["const"] !== undefined || node["enum"] !== undefined) return [];
  const alternatives = ["anyOf", "oneOf", "allOf"].flatMap((key) => asList(node[key]));
  if (alternatives.length > 0) return alternatives.flatMap((part) => openNodes(root, part, path, inner));
  const types = asList(Array.isArray(node["type"]) ? node["type"] : [node["type"] ?? null]);
  const join = (name: string): string => (path === "" ? name : `${path}.${name}`);
  const found: string[] = [];
  if (types.includes("object") || node["properties"] !== undefined) {
    const rest = node["additionalProperties"] ?? node["unevaluatedProperties"];
    if (rest === undefined || rest === true) found.push(path);
    else if (rest !== false) found.push(...openNodes(root, rest, join("*"), inner));
    for (const [name, property] of Object.entries(asObject(node["properties"]))) {
      found.push(...openNodes(root, property, join(name), inner));
    }
  } else if (types.includes("array")) {
    found.push(...openNodes(root, node["items"], join("[]"), inner));
  } else if (types.every((type) => type === null)) found.push(path);
  return found;
}

describe("requests", () => {
  rule("[API-12] records whose nested parts have versions of their own are answered as documented", async () => {
    const { client } = shared;
    const check = createResponseCheck(document);
    const space = await createSpace(client);
    const items = await createCollection(client, space.id);
    await items.modify([setFields("rec", { o: { city: "Ulm", street: { no: 7 } } })]);
    await items.modify([setFields("rec", { "o.street.no": 9 })]);
    const operation = document.operations.find(({ path }) => path === "/v1/spaces/{spaceId}/query")!;
    const { objectId, dataset } = items;
    const reply = await client.request("POST", `/v1/spaces/${space.id}/query`, { body: { objectId, dataset } });
    expect(reply.text).toMatch(/"o":\{"\*":"\w+","street":\{"\*":"\w+","no":"\w+"\}\}/);
    expect(check.faultOf(operation, reply)).toBeUndefined();
  });

  rule(
    "[API-12] random requests never give a 500, never stall, and every answer is as documented",
    () => fuzz(seed),
    300_000,
  );
  for (const past of PAST_SEEDS) rule(`[API-12] past failure: ${past.name}`, () => fuzz(past.seed), 300_000);
});

async function fuzz(fuzzSeed: number): Promise<void> {
  const { client } = shared;
  const check = createResponseCheck(document);
  const faults = new Map<string, string>();
  let pool: Record<string, string> | undefined;
  for (const operation of document.operations) {
    if (operation.path === "/v1/shutdown") continue;
    const rng = createRng(fuzzSeed).fork(`${operation.method} ${operation.path}`);
    pool ??= await createPool(client);
    const isAlwaysAlike = operation.parameters.length === 0 && operation.body === undefined;
    for (let i = 0; i < (isAlwaysAlike ? REQUESTS_ALL_ALIKE : REQUESTS_PER_OPERATION); i++) {
      const request = makeRequest(operation, rng, pool, i);
      const fault = await send(client, operation, request, check.faultOf);
      if (fault === undefined) continue;
      const key = `${operation.method} ${operation.path}: ${fault.slice(0, 120)}`;
      if (!faults.has(key))
        faults.set(key, `${operation.method} ${request.url} ${clip(request.raw, 400)}\n    ${fault}`);
    }
    if (operation.method !== "GET") pool = undefined;
  }
  const health = await client.get<JsonObject>("/v1/health");
  expect(health["status"]).toBe("ok");
  if (faults.size > 0)
    throw new Error(`SEED=${fuzzSeed}: ${faults.size} kinds of fault\n  ${[...faults.values()].join("\n  ")}`);
}

interface FuzzRequest {
  url: string;
  raw: string | undefined;
}

/** Real values for the placeholders, made anew after each operation that writes, because such operations delete things. */
async function createPool(client: Client): Promise<Record<string, string>> {
  const space = await createSpace(client);
  const items = await createCollection(client, space.id);
  await items.modify([setFields("rec", { n: 1 })]);
  const spare = await createObject(client, space.id);
  const account = await client.get<{ id: string; peerId: string }>("/v1/account");
  return {
    spaceId: space.id,
    objectId: items.objectId,
    spareObjectId: spare.id,
    typeId: items.typeId,
    dataset: items.dataset,
    identity: account.id,
    peerId: account.peerId,
    name: "agent",
    recordId: "rec",
  };
}

/** A third plain, a third spoilt, a third hostile; path values mostly real so that bodies are reached. */
function makeRequest(operation: Operation, rng: Rng, pool: Record<string, string>, index: number): FuzzRequest {
  const path = operation.path.replace(/\{([^}]+)\}/g, (_, name: string) => {
    const real = pool[name];
    return encodeURIComponent(real !== undefined && rng.chance(0.8) ? real : rng.pick(HOSTILE_STRINGS) || "x");
  });
  const query = new URLSearchParams();
  for (const parameter of operation.parameters.filter((entry) => entry.in === "query")) {
    if (!parameter.required && rng.chance(0.5)) continue;
    const value = rng.chance(0.6) ? sampleValue(document.root, parameter.schema, rng) : rng.pick(HOSTILE_STRINGS);
    query.set(parameter.name, typeof value === "string" ? value : JSON.stringify(value));
  }
  const url = query.size > 0 ? `${path}?${query}` : path;
  if (operation.body === undefined) return { url, raw: undefined };
  let body = sampleValue(document.root, operation.body, rng);
  if (body !== null && typeof body === "object" && !Array.isArray(body)) {
    for (const key of ["objectId", "dataset"] as const)
      if (body[key] !== undefined && rng.chance(0.8)) body[key] = pool[key];
  }
  if (index % 3 > 0) for (let faults = index % 3; faults > 0; faults--) body = spoil(body, rng);
  return { url, raw: JSON.stringify(body) };
}

async function send(
  client: Client,
  operation: Operation,
  request: FuzzRequest,
  faultOf: (operation: Operation, reply: Reply) => string | undefined,
): Promise<string | undefined> {
  const signal = AbortSignal.timeout(DEADLINE_MS);
  try {
    const response = await fetch(client.base + request.url, {
      method: operation.method,
      redirect: "manual",
      signal,
      ...(request.raw === undefined ? {} : { body: request.raw, headers: { "Content-Type": "application/json" } }),
    });
    if ((response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
      await response.body!.cancel();
      return operation.responses.get(200)?.stream ? undefined : "an undocumented event stream";
    }
    const text = await response.text();
    const json = text === "" ? undefined : parseOr(text);
    return faultOf(operation, { status: response.status, headers: response.headers, text, json });
  } catch (error) {
    return signal.aborted ? `no answer within ${DEADLINE_MS} ms` : `the connection broke: ${String(error)}`;
  }
}

function parseOr(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined; // reported by faultOf as "no JSON"
  }
}
