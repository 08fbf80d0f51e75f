/** A form, as JSON, for a new record of a dataset or for new fields of an existing one. */
import { useSignal } from "@preact/signals";
import type { Json, JsonObject } from "../../src/protocol/json.ts";
import { ApiError, type DatasetItem } from "../api/api-client.ts";
import { typeApi } from "../api/type-api.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { TextField } from "../parts/text-field.tsx";

export interface NewRecordProps {
  spaceId: string;
  objectId: string;
  dataset: DatasetItem;
}

export function NewRecord({ spaceId, objectId, dataset }: NewRecordProps) {
  const { busy, error, run } = useFormAction();
  const callerNamesIt = dataset.schema["x-id"] === "user";
  const id = useSignal("");
  const fields = useSignal(template(dataset.schema));
  const submit = (event: Event) => {
    event.preventDefault();
    run(async () => {
      const written = await typeApi.createRecord(spaceId, objectId, dataset.name, id.value.trim(), parse(fields.value));
      const refused = written.rejections?.[0];
      if (refused) throw new ApiError("rejected", refused.reason, 0);
      id.value = "";
      fields.value = template(dataset.schema);
    });
  };
  return (
    <details class="card">
      <summary>New record</summary>
      <form onSubmit={submit}>
        {callerNamesIt && <TextField id="record-id" label="Record id" text={id} required />}
        <label for="record-fields">Fields (JSON)</label>
        <textarea
          id="record-fields"
          class="mono"
          rows={6}
          spellcheck={false}
          value={fields}
          onInput={(event) => {
            fields.value = event.currentTarget.value;
          }}
        />
        <ErrorNote error={error} />
        <button type="submit" class="primary" disabled={busy}>
          Create record
        </button>
      </form>
    </details>
  );
}

function parse(text: string): JsonObject {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (fault) {
    throw new ApiError("fields", `The fields are not valid JSON: ${fault instanceof Error ? fault.message : fault}`, 0);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new ApiError("fields", "The fields have to be a JSON object", 0);
}

/** An example value for every field that a client may set. */
function template(schema: JsonObject): string {
  const fields = Object.entries((schema["properties"] ?? {}) as Record<string, JsonObject>);
  const settable = fields.filter(([name, field]) => name !== "id" && field["x-scope"] === "synced");
  return JSON.stringify(Object.fromEntries(settable.map(([name, field]) => [name, emptyValue(field)])), null, 2);
}

function emptyValue(field: JsonObject): Json {
  switch (field["type"]) {
    case "number":
    case "integer":
      return 0;
    case "boolean":
      return false;
    case "array":
      return [];
    case "object":
      return field["format"] === "date-time" || JSON.stringify(field).includes("$date")
        ? { $date: new Date().toISOString() }
        : {};
    default:
      return "";
  }
}
