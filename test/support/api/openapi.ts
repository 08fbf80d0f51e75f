/** Reads the server's own OpenAPI document the way a client would. */
import type { Client, Json, JsonObject } from "../server/client.ts";

export interface Operation {
  method: string;
  /** With `{name}` placeholders. */
  path: string;
  parameters: Parameter[];
  /** Schema of the JSON request body, with references resolved at its top; undefined when there is none. */
  body?: JsonObject;
  bodyRequired: boolean;
  /** By status: the schema of the JSON answer, or null when it has no JSON body. */
  responses: Map<number, { schema: Json | null; stream: boolean }>;
  raw: JsonObject;
}
interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required: boolean;
  schema: JsonObject;
}
export interface ApiDocument {
  root: JsonObject;
  operations: Operation[];
}

const METHODS = ["get", "post", "put", "patch", "delete"] as const;

export async function loadDocument(client: Client): Promise<ApiDocument> {
  const root = await client.get<JsonObject>("/v1/openapi.json");
  const operations: Operation[] = [];
  for (const [path, item] of Object.entries(asObject(root["paths"]))) {
    for (const method of METHODS) {
      const raw = asObject(item)[method];
      if (raw !== undefined) operations.push(readOperation(root, method, path, asObject(item), asObject(raw)));
    }
  }
  return { root, operations };
}

function readOperation(root: JsonObject, method: string, path: string, item: JsonObject, raw: JsonObject): Operation {
  const listed = [...asList(item["parameters"]), ...asList(raw["parameters"])].map((entry) => resolveRef(root, entry));
  const parameters = listed.map(
    (entry): Parameter => ({
      name: String(entry["name"]),
      in: entry["in"] as Parameter["in"],
      required: entry["required"] === true,
      schema: asObject(entry["schema"]),
    }),
  );
  const requestBody = raw["requestBody"] === undefined ? undefined : resolveRef(root, raw["requestBody"]);
  const jsonBody = requestBody ? jsonSchemaOf(requestBody) : undefined;
  const responses: Operation["responses"] = new Map();
  for (const [status, entry] of Object.entries(asObject(raw["responses"]))) {
    const response = resolveRef(root, entry);
    const stream = asObject(response["content"])["text/event-stream"] !== undefined;
    responses.set(Number(status), { schema: jsonSchemaOf(response) ?? null, stream });
  }
  return {
    method: method.toUpperCase(),
    path,
    parameters,
    ...(jsonBody === undefined ? {} : { body: resolveRef(root, jsonBody) }),
    bodyRequired: requestBody?.["required"] === true,
    responses,
    raw,
  };
}

function jsonSchemaOf(holder: JsonObject): Json | undefined {
  const content = asObject(holder["content"]);
  const type = Object.keys(content).find((name) => name.startsWith("application/json"));
  return type === undefined ? undefined : asObject(content[type])["schema"];
}

/** Follows `$ref` (local ones only) until a plain node is reached. */
export function resolveRef(root: JsonObject, node: Json | undefined): JsonObject {
  let current = asObject(node);
  for (let hops = 0; typeof current["$ref"] === "string"; hops++) {
    if (hops > 20) throw new Error(`circular reference ${current["$ref"]}`);
    const pointer = current["$ref"];
    if (!pointer.startsWith("#/")) throw new Error(`foreign reference ${pointer}`);
    let target: Json | undefined = root;
    for (const step of pointer.slice(2).split("/")) {
      target = asObject(target)[decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~")];
    }
    current = asObject(target);
  }
  return current;
}

export function asObject(value: Json | undefined): JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
}
export function asList(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

/** True when the operation's JSON body refuses unknown top-level keys. */
export function isStrict(operation: Operation): boolean {
  return operation.body?.["additionalProperties"] === false || operation.body?.["unevaluatedProperties"] === false;
}

/** Fills the path's placeholders with the given values; others get `fallback`. */
export function fillPath(path: string, values: Record<string, string>, fallback = "x"): string {
  return path.replace(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? fallback));
}
