/** One dataset: its fields, their kinds, and who may change them. */
import type { JsonObject } from "../../src/protocol/json.ts";
import type { DatasetItem } from "../api/api-client.ts";

export function DatasetCard({ dataset }: { dataset: DatasetItem }) {
  const fields = Object.entries(fieldsOf(dataset.schema));
  return (
    <li class="card">
      <h2>{dataset.name}</h2>
      {fields.length === 0 && <p class="faint">No declared fields</p>}
      <ul class="fields">
        {fields.map(([name, schema]) => (
          <li key={name}>
            <code>{name}</code> <span class="faint">{describeField(name, schema)}</span>
          </li>
        ))}
      </ul>
    </li>
  );
}

function describeField(name: string, schema: JsonObject): string {
  const scope = schema["x-scope"];
  const kind = [kindOf(schema), scope === "synced" ? undefined : scope];
  return [...kind, name === "id" || scope === "derived" ? undefined : whoChanges(schema)].filter(Boolean).join(", ");
}

/** An instant is an object with its own kind: `{$date}`. */
const kindOf = (schema: JsonObject) => (fieldsOf(schema)["$date"] === undefined ? schema["type"] : "datetime");

const fieldsOf = (schema: JsonObject) => (schema["properties"] ?? {}) as Record<string, JsonObject>;

function whoChanges(schema: JsonObject): string | undefined {
  if (schema["x-stamp"] !== undefined) return "set by the server";
  if (schema["x-mutable-by"] === "any") return undefined;
  // In a group, each value says who may change it.
  if (Object.values(fieldsOf(schema)).some((value) => value["x-mutable-by"] !== undefined)) return undefined;
  return schema["x-mutable-by"] === "author"
    ? "changed by its record's author alone"
    : "written once, when the record is made";
}
