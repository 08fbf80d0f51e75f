import { expect, test } from "bun:test";
import SwaggerParser from "@apidevtools/swagger-parser";
import { Type } from "@sinclair/typebox";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { JsonObject } from "../../protocol/json.ts";
import { oneOf, strict } from "../../protocol/schema.ts";
import { type Route, route } from "../route.ts";
import { openApiRoute } from "../routes/openapi.ts";
import { ROUTES } from "../routes/route-table.ts";
import { buildOpenApi } from "./openapi-document.ts";

const Thing = Type.Object(
  { kind: oneOf(["a", "b"]), bag: Type.Record(Type.String(), Type.Number()) },
  { $id: "Thing", additionalProperties: false },
);
const sample: Route = route({
  method: "POST",
  path: "/v1/spaces/:spaceId/things/:thingId",
  id: "postSpacesSpaceIdThingsThingId",
  tag: "Things",
  summary: "A thing",
  query: Type.Object({
    limit: Type.Optional(Type.Integer({ description: "How many" })),
    tag: Type.Array(Type.String()),
  }),
  body: strict({ name: Type.String(), scope: Type.Optional(oneOf(["x"], { fault: "request.schema" })) }),
  example: { name: "n" },
  responses: {
    201: { description: "Made", schema: Thing, example: { kind: "a", bag: { n: 1 } } },
    202: { description: "Later", schema: Type.Array(Thing) },
  },
  errors: ["identity.not_found", ["type.not_found", 400]],
  handler: async () => ({ kind: "a" as const, bag: {} }),
});
const all = [...ROUTES, sample];
const document = buildOpenApi([...all, openApiRoute(all)]);
const at = (...path: string[]): JsonObject =>
  path.reduce<JsonObject>((value, key) => value[key] as JsonObject, document);

test("[API-12] the document is valid OpenAPI 3.1", async () => {
  expect(document["openapi"]).toBe("3.1.0");
  await SwaggerParser.validate(structuredClone(document) as never);
});

test("[API-12] every schema compiles, and the examples agree with theirs", () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats(ajv);
  ajv.addSchema({ ...(document as object), $id: "doc" });
  let examples = 0;
  const compiles = (schema: unknown) =>
    ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"doc#/components')));
  for (const answer of Object.values(at("components", "responses"))) {
    compiles(((answer as JsonObject)["content"] as Record<string, JsonObject>)["application/json"]?.["schema"]);
  }
  for (const [path, item] of Object.entries(at("paths"))) {
    for (const [method, operation] of Object.entries(item as JsonObject)) {
      const { requestBody, responses } = operation as { requestBody?: JsonObject; responses: JsonObject };
      for (const holder of [requestBody, ...Object.values(responses)]) {
        const content = (holder as JsonObject | undefined)?.["content"] as JsonObject | undefined;
        const json = content?.["application/json"] as JsonObject | undefined;
        if (!json) continue;
        const validate = compiles(json["schema"]);
        if (json["example"] === undefined) continue;
        examples++;
        expect([method, path, validate(json["example"]) || validate.errors]).toEqual([method, path, true]);
      }
    }
  }
  expect(examples).toBeGreaterThan(3);
});

test("[API-12] operation ids are unique; every route is there with its errors by status", () => {
  const ids = Object.values(at("paths")).flatMap((item) =>
    Object.values(item as JsonObject).map((operation) => (operation as JsonObject)["operationId"]),
  );
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toContain("getOpenApi");
  const answers = at("paths", "/v1/spaces/{spaceId}/things/{thingId}", "post", "responses");
  const responses = Object.fromEntries(
    Object.entries(answers).map(([status, answer]) => {
      const name = String((answer as JsonObject)["$ref"])
        .split("/")
        .at(-1) as string;
      return [status, at("components", "responses")[name] ?? answer];
    }),
  );
  expect(Object.keys(responses)).toEqual([
    "201",
    "202",
    "400",
    "401",
    "403",
    "404",
    "409",
    "413",
    "415",
    "500",
    "503",
    "507",
  ]);
  expect(JSON.stringify(responses["400"])).toContain("type.not_found");
  expect(JSON.stringify(responses["404"])).toContain("identity.not_found");
});

test("[API-12] strict exactly where the endpoint is strict; named schemas are components; private keywords stay out", () => {
  const post = at("paths", "/v1/spaces/{spaceId}/things/{thingId}", "post");
  const body = (((post["requestBody"] as JsonObject)["content"] as JsonObject)["application/json"] as JsonObject)[
    "schema"
  ];
  expect(body).toEqual({
    type: "object",
    properties: { name: { type: "string" }, scope: { const: "x", type: "string" } },
    required: ["name"],
    additionalProperties: false,
  });
  expect(at("components", "schemas", "Thing")).toEqual({
    type: "object",
    properties: {
      kind: { type: "string", enum: ["a", "b"] },
      bag: { type: "object", additionalProperties: { type: "number" } },
    },
    required: ["kind", "bag"],
    additionalProperties: false,
  });
  expect(JSON.stringify(document)).not.toContain('"fault"');
  expect(() =>
    buildOpenApi([
      sample,
      { ...sample, path: "/v1/x", responses: { 200: { description: "", schema: Type.String({ $id: "Thing" }) } } },
    ]),
  ).toThrow("Thing");
});
