/** One object: the records of its datasets, live, and its own row. */
import { api, type DatasetItem, spacePath } from "./api-client.ts";
import { ErrorNote } from "./error-note.tsx";
import { LiveTable } from "./live-table.tsx";
import { objectTitle, objectTypes } from "./object-list.tsx";
import { href, route, setParams } from "./router.ts";
import { spaceTitle } from "./space-list-page.tsx";
import { useLoaded } from "./use-loaded.ts";

export function ObjectPage({ spaceId, objectId }: { spaceId: string; objectId: string }) {
  const { value, error } = useLoaded(
    () => Promise.all([api.space(spaceId), api.object(spaceId, objectId), api.datasets(spaceId)]),
    `${spaceId} ${objectId}`,
  );
  if (error) return <ErrorNote error={error} />;
  if (!value) return <p class="faint">Loading…</p>;
  const [space, record, datasets] = value;
  const types = objectTypes(record);
  // Datasets of the object's own types first; those that no type owns may hold records of any object.
  const offered = [
    ...datasets.filter(({ typeId }) => typeId !== undefined && types.includes(typeId)),
    ...datasets.filter(({ typeId }) => typeId === undefined),
  ];
  return (
    <>
      <nav class="crumbs" aria-label="Where you are">
        <a href={href("spaces")}>Spaces</a>
        <a href={href("spaces", spaceId)}>{spaceTitle(space)}</a>
      </nav>
      <h1>{objectTitle(record)}</h1>
      <p class="tags">
        {types.map((type) => (
          <span class="tag" key={type}>
            {type}
          </span>
        ))}
      </p>
      <Records spaceId={spaceId} objectId={objectId} datasets={offered} />
      <details class="card">
        <summary>The object's own row</summary>
        <pre>{JSON.stringify(record, null, 2)}</pre>
      </details>
    </>
  );
}

function Records(props: { spaceId: string; objectId: string; datasets: readonly DatasetItem[] }) {
  const dataset = route.value.params.get("dataset") ?? props.datasets[0]?.name;
  if (dataset === undefined) return <p class="empty">This space has no datasets for this object.</p>;
  return (
    <>
      <div class="inline-form">
        <label for="dataset">Dataset</label>
        <select
          id="dataset"
          value={dataset}
          onChange={(event) => setParams({ dataset: event.currentTarget.value, filter: undefined, sort: undefined })}
        >
          {props.datasets.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <LiveTable
        key={dataset}
        caption={`Records of ${dataset}`}
        path={spacePath(props.spaceId, "query")}
        target={{ objectId: props.objectId, dataset }}
        defaultSort="id"
      />
    </>
  );
}
