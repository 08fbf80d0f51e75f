/** Random values for a JSON Schema (the 2020-12 subset that API documents use), valid ones and spoilt ones. */

import type { Rng } from "../rng.ts";
import type { Json, JsonObject } from "../server/client.ts";
import { asList, asObject, resolveRef } from "./openapi.ts";

/** Strings that have broken parsers, databases and paths before. */
export const HOSTILE_STRINGS = [
  "",
  " ",
  "null",
  "undefined",
  "[object Object]",
  "__proto__",
  "constructor",
  "a.b.c",
  "$set",
  "'; DROP TABLE rows; --",
  '"quoted"',
  "nul\u0000byte",
  "\u{1F9ED}\u202E\uFFFD",
  "../../etc/passwd",
  "%2e%2e%2f",
  "{{7*7}}",
  "<script>alert(1)</script>",
  "0",
  "-1",
  "1e309",
  "x".repeat(5_000),
  "\r\nX-Injected: 1",
];

/** A value that fits the schema as far as the sampler understands it. */
export function sampleValue(root: JsonObject, schema: Json | undefined, rng: Rng, depth = 0): Json {
  if (schema === true || schema === undefined) return sampleAnything(rng, depth);
  const node = resolveRef(root, schema);
  if (node["const"] !== undefined) return node["const"];
  const choices = asList(node["enum"]);
  if (choices.length > 0) return rng.pick(choices);
  const alternatives = [...asList(node["anyOf"]), ...asList(node["oneOf"])];
  if (alternatives.length > 0) return sampleValue(root, rng.pick(alternatives), rng, depth);
  const parts = asList(node["allOf"]);
  if (parts.length > 0) {
    return Object.assign({}, ...parts.map((part) => asObject(sampleValue(root, part, rng, depth)))) as JsonObject;
  }
  const types = Array.isArray(node["type"]) ? node["type"] : [node["type"]];
  switch (rng.pick(types)) {
    case "string":
      return sampleString(node, rng);
    case "integer":
      return sampleNumber(node, rng, true);
    case "number":
      return sampleNumber(node, rng, false);
    case "boolean":
      return rng.chance(0.5);
    case "null":
      return null;
    case "array": {
      const count = Math.min(depth > 6 ? 0 : rng.int(0, 3), Number(node["maxItems"] ?? 3));
      return Array.from({ length: count }, () => sampleValue(root, node["items"], rng, depth + 1));
    }
    case "object":
      return sampleObject(root, node, rng, depth);
    default:
      return node["properties"] === undefined ? sampleAnything(rng, depth) : sampleObject(root, node, rng, depth);
  }
}

function sampleObject(root: JsonObject, node: JsonObject, rng: Rng, depth: number): JsonObject {
  const required = asList(node["required"]);
  const value: JsonObject = {};
  for (const [name, property] of Object.entries(asObject(node["properties"]))) {
    if (required.includes(name) || (depth < 5 && rng.chance(0.6)))
      value[name] = sampleValue(root, property, rng, depth + 1);
  }
  const extra = node["additionalProperties"];
  if (extra !== false && extra !== undefined && depth < 4) {
    for (let i = rng.int(0, 2); i > 0; i--)
      value[rng.pick(["alpha", "beta", "x.y", "$k"])] = sampleValue(root, extra, rng, depth + 1);
  }
  return value;
}

function sampleString(node: JsonObject, rng: Rng): string {
  const length = Number(node["minLength"] ?? 0);
  const plain = rng.pick(["a", "name", "alpha", "m5", "2026-01-31T09:30:00.000Z", "svc.space", "spaces", "agent"]);
  return plain.padEnd(length, "a").slice(0, Number(node["maxLength"] ?? plain.length + length));
}

function sampleNumber(node: JsonObject, rng: Rng, whole: boolean): number {
  const low = Number(node["minimum"] ?? -5);
  const high = Number(node["maximum"] ?? Math.max(low, 1_000));
  return whole ? rng.int(Math.ceil(low), Math.floor(high)) : low + rng.next() * (high - low);
}

function sampleAnything(rng: Rng, depth = 0): Json {
  const kind = rng.int(0, depth > 3 ? 4 : 6);
  if (kind === 0) return null;
  if (kind === 1) return rng.chance(0.5);
  if (kind === 2) return rng.pick([0, -1, 1.5, 2 ** 53, -1e308, 42]);
  if (kind <= 4) return rng.pick(HOSTILE_STRINGS);
  if (kind === 5) return Array.from({ length: rng.int(0, 3) }, () => sampleAnything(rng, depth + 1));
  return Object.fromEntries(
    Array.from({ length: rng.int(0, 3) }, () => [rng.pick(HOSTILE_STRINGS), sampleAnything(rng, depth + 1)]),
  );
}

/** One fault put into a value: a member dropped, added, or replaced at a random depth. */
export function spoil(value: Json, rng: Rng): Json {
  if (value !== null && typeof value === "object" && rng.chance(0.7)) {
    if (Array.isArray(value)) {
      if (value.length === 0) return [sampleAnything(rng)];
      const index = rng.int(0, value.length - 1);
      return value.map((item, i) => (i === index ? spoil(item, rng) : item));
    }
    const keys = Object.keys(value);
    const action = rng.int(0, 2);
    if (action === 0 || keys.length === 0)
      return { ...value, [rng.pick(HOSTILE_STRINGS) || "zzz"]: sampleAnything(rng) };
    const key = rng.pick(keys);
    if (action === 1) return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
    return { ...value, [key]: spoil(value[key] ?? null, rng) };
  }
  return sampleAnything(rng);
}
