import type { TSchema } from "@sinclair/typebox";
import type { JsonObject } from "../../protocol/json.ts";
import { isLiteralUnion } from "../schema/schema-describe.ts";

/** Keywords that our checker needs and a reader of the document does not. */
const PRIVATE_KEYWORDS = new Set(["fault", "errorMessage", "describedAs", "$id"]);
/** TypeBox's pattern for a record with any key. */
const ANY_KEY = "^(.*)$";

/** Writes TypeBox schemas as schemas of an OpenAPI 3.1 document; both are JSON Schema 2020-12. */
export interface SchemaWriter {
  /** Writes a schema; one with an `$id` becomes a component of that name, and a reference to it is returned. */
  write(schema: TSchema): JsonObject;
  readonly components: Readonly<Record<string, JsonObject>>;
}

export function createSchemaWriter(): SchemaWriter {
  const components: Record<string, JsonObject> = {};
  const sourceById = new Map<string, TSchema>();

  function write(schema: TSchema): JsonObject {
    const { describedAs, description } = schema;
    if (describedAs) return { ...write(describedAs as TSchema), ...(description ? { description } : {}) };
    const id = schema.$id;
    if (id === undefined) return writeInline(schema);
    const known = sourceById.get(id);
    if (known && known !== schema && JSON.stringify(known) !== JSON.stringify(schema)) {
      throw new Error(`two different schemas are called ${id}`);
    }
    if (!known) {
      sourceById.set(id, schema);
      components[id] = {};
      components[id] = writeInline(schema);
    }
    return { $ref: `#/components/schemas/${id}` };
  }

  function writeInline(schema: TSchema): JsonObject {
    // Going through JSON drops what is not part of the schema: TypeBox's symbols, undefined.
    if (isLiteralUnion(schema)) return writeEnum(schema);
    const out: JsonObject = {};
    for (const [keyword, value] of Object.entries(schema)) {
      if (PRIVATE_KEYWORDS.has(keyword) || value === undefined) continue;
      if (keyword === "$ref") out[keyword] = `#/components/schemas/${value}`;
      else if (keyword === "properties") out[keyword] = writeMap(value);
      else if (keyword === "patternProperties") Object.assign(out, writePatterns(value));
      else if (keyword === "items" || keyword === "additionalProperties" || keyword === "not")
        out[keyword] = writeNested(value);
      else if (["anyOf", "allOf", "oneOf", "prefixItems"].includes(keyword))
        out[keyword] = (value as TSchema[]).map(write);
      else out[keyword] = JSON.parse(JSON.stringify(value));
    }
    return out;
  }

  const writeNested = (value: unknown) => (typeof value === "boolean" ? value : write(value as TSchema));

  function writeMap(map: Record<string, TSchema>): JsonObject {
    return Object.fromEntries(Object.entries(map).map(([name, schema]) => [name, write(schema)]));
  }

  function writePatterns(patterns: Record<string, TSchema>): JsonObject {
    const any = patterns[ANY_KEY];
    return any && Object.keys(patterns).length === 1
      ? { additionalProperties: write(any) }
      : { patternProperties: writeMap(patterns) };
  }

  return { write, components };
}

function writeEnum(schema: TSchema): JsonObject {
  const values = (schema["anyOf"] as TSchema[]).map((member) => String(member["const"]));
  return { type: "string", enum: values, ...(schema.description ? { description: schema.description } : {}) };
}
