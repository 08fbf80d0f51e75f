/** The records of an object's datasets, live, and a form for a new one. */
import { ApiError, api, type DatasetItem, spacePath, type WriteResult } from "../api/api-client.ts";
import { typeApi } from "../api/type-api.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { route, setParams } from "../state/router.ts";
import { useLoaded } from "../state/use-loaded.ts";
import { LiveTable } from "./live-table.tsx";
import { NewRecord } from "./new-record.tsx";

export interface RecordsViewProps {
  spaceId: string;
  objectId: string;
  types: readonly string[];
}

const NO_TYPES = "This object has no types, and so no datasets.";
const NO_DATASETS = "This object has no datasets: none of its types declares any.";

export function RecordsView({ spaceId, objectId, types }: RecordsViewProps) {
  const { value: datasets, error } = useLoaded(() => api.datasets(spaceId), spaceId);
  if (error) return <ErrorNote error={error} />;
  if (!datasets) return <p class="faint">Loading…</p>;
  const offered = datasets.filter(({ typeId }) => typeId !== undefined && types.includes(typeId));
  const name = route.value.params.get("dataset") ?? offered[0]?.name;
  const dataset = offered.find((candidate) => candidate.name === name);
  if (!dataset) return <p class="empty">{types.length === 0 ? NO_TYPES : NO_DATASETS}</p>;
  return (
    <>
      <DatasetChoice datasets={offered} name={dataset.name} />
      <NewRecord key={`new ${dataset.name}`} spaceId={spaceId} objectId={objectId} dataset={dataset} />
      <LiveTable
        key={dataset.name}
        caption={`Records of ${dataset.name}`}
        path={spacePath(spaceId, "query")}
        target={{ objectId, dataset: dataset.name }}
        defaultSort="id"
        actions={({ id }) => (
          <DeleteRecord onDelete={() => typeApi.deleteRecord(spaceId, objectId, dataset.name, id)} />
        )}
      />
    </>
  );
}

function DeleteRecord({ onDelete }: { onDelete: () => Promise<WriteResult> }) {
  const { busy, error, run } = useFormAction();
  const remove = () =>
    run(async () => {
      const refused = (await onDelete()).rejections?.[0];
      if (refused) throw new ApiError("rejected", refused.reason, 0);
    });
  return (
    <>
      <ConfirmButton label="Delete" question="Delete for everybody" disabled={busy} onConfirm={remove} />
      <ErrorNote error={error} />
    </>
  );
}

function DatasetChoice({ datasets, name }: { datasets: readonly DatasetItem[]; name: string }) {
  return (
    <div class="inline-form">
      <label for="dataset">Dataset</label>
      <select
        id="dataset"
        value={name}
        onChange={(event) => setParams({ dataset: event.currentTarget.value, filter: undefined, sort: undefined })}
      >
        {datasets.map((dataset) => (
          <option key={dataset.name} value={dataset.name}>
            {dataset.name}
          </option>
        ))}
      </select>
    </div>
  );
}
