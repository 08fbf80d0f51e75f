/** The datasets a space knows, with their fields. */
import { useSignal } from "@preact/signals";
import { api } from "../api/api-client.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { useLoaded } from "../state/use-loaded.ts";
import { DatasetCard } from "./dataset-card.tsx";
import { NewDataset } from "./new-dataset.tsx";

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
