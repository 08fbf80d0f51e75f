/** The datasets a space knows, with their fields. */
import { useSignal } from "@preact/signals";
import type { JsonObject } from "../src/protocol/json.ts";
import { api, type DatasetItem } from "./api-client.ts";
import { ErrorNote } from "./error-note.tsx";
import { NewDataset } from "./new-dataset.tsx";
import { useLoaded } from "./use-loaded.ts";

export function DatasetList({ spaceId }: { spaceId: string }) {
  const made = useSignal(0);
  const { value: datasets, error } = useLoaded(() => api.datasets(spaceId), `${spaceId} ${made.value}`);
  if (error) return <ErrorNote error={error} />;
  if (!datasets) return <p class="faint">Loading…</p>;
  return (
    <>
      <NewDataset
        spaceId={spaceId}
        onMade={() => {
          made.value++;
        }}
      />
      <ul class="cards">
        {datasets.map((dataset) => (
          <DatasetCard key={dataset.name} dataset={dataset} />
        ))}
      </ul>
    </>
  );
}

function DatasetCard({ dataset }: { dataset: DatasetItem }) {
  const fields = Object.entries((dataset.schema["properties"] ?? {}) as JsonObject);
  return (
    <li class="card">
      <h2>{dataset.name}</h2>
      {fields.length === 0 && <p class="faint">No declared fields</p>}
      <ul class="fields">
        {fields.map(([name, schema]) => (
          <li key={name}>
            <code>{name}</code> <span class="faint">{fieldKind(schema as JsonObject)}</span>
          </li>
        ))}
      </ul>
    </li>
  );
}

function fieldKind(schema: JsonObject): string {
  const scope = schema["x-scope"];
  return [schema["type"], scope === "synced" ? undefined : scope].filter(Boolean).join(", ");
}
