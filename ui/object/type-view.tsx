/** What a type gives its objects: properties and datasets. */
import { api } from "../api/api-client.ts";
import { typeApi } from "../api/type-api.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { DatasetCard } from "../record/dataset-card.tsx";
import { useLoaded } from "../state/use-loaded.ts";

export function TypeView({ spaceId, typeId }: { spaceId: string; typeId: string }) {
  const datasets = useLoaded(() => api.datasets(spaceId), `${spaceId} ${typeId}`);
  const properties = useLoaded(() => typeApi.properties(spaceId, typeId), `${spaceId} ${typeId}`);
  const error = datasets.error ?? properties.error;
  if (error) return <ErrorNote error={error} />;
  if (!datasets.value || !properties.value) return <p class="faint">Loading…</p>;
  const own = datasets.value.filter((dataset) => dataset.typeId === typeId);
  return (
    <>
      <p class="lead">This is a type: what its objects have.</p>
      <section class="card" aria-labelledby="properties-title">
        <h2 id="properties-title">Properties</h2>
        {properties.value.length === 0 && <p class="faint">It declares none.</p>}
        <ul class="fields">
          {properties.value.map(({ id, name, xKey, kind }) => (
            <li key={id}>
              {name || xKey || id} <span class="faint">{kind}</span>
            </li>
          ))}
        </ul>
      </section>
      <h2>Datasets</h2>
      {own.length === 0 && <p class="faint">It declares none.</p>}
      <ul class="cards">
        {own.map((dataset) => (
          <DatasetCard key={dataset.name} dataset={dataset} />
        ))}
      </ul>
    </>
  );
}
