/** The objects of a space, live, and a form for a new one. */
import { useSignal } from "@preact/signals";
import type { Json } from "../src/protocol/json.ts";
import { type AnyRecord, api, spacePath } from "./api-client.ts";
import { displayValue } from "./display-value.ts";
import { ErrorNote } from "./error-note.tsx";
import { useFormAction } from "./form-action.ts";
import { type Column, LiveTable } from "./live-table.tsx";
import { href } from "./router.ts";

export function ObjectList({ spaceId }: { spaceId: string }) {
  const columns: Column[] = [
    {
      title: "Name",
      cell: (record) => <a href={href("spaces", spaceId, "objects", record.id)}>{objectTitle(record)}</a>,
    },
    { title: "Types", cell: (record) => objectTypes(record).join(", ") },
    { title: "Modified", cell: (record) => displayValue(record["modifiedAt"]) },
  ];
  return (
    <>
      <NewObject spaceId={spaceId} />
      <LiveTable
        caption="Objects"
        path={spacePath(spaceId, "objects", "query")}
        target={{}}
        defaultSort="-modifiedAt"
        columns={columns}
      />
    </>
  );
}

function NewObject({ spaceId }: { spaceId: string }) {
  const { busy, error, run } = useFormAction();
  const name = useSignal("");
  const submit = (event: Event) => {
    event.preventDefault();
    run(async () => {
      await api.createObject(spaceId, name.value.trim());
      name.value = "";
    });
  };
  return (
    <form class="inline-form" onSubmit={submit}>
      <label for="object-name">New object</label>
      <input
        id="object-name"
        placeholder="Name"
        required
        value={name}
        onInput={(event) => {
          name.value = event.currentTarget.value;
        }}
      />
      <button type="submit" disabled={busy}>
        Create
      </button>
      <ErrorNote error={error} />
    </form>
  );
}

/** An object's name, or the end of its id. */
export function objectTitle(record: AnyRecord): string {
  const name = shared(record, "name");
  return typeof name === "string" && name !== "" ? name : `Unnamed …${record.id.slice(-6)}`;
}

export function objectTypes(record: AnyRecord): string[] {
  const types = shared(record, "types");
  return Array.isArray(types) ? types.filter((type) => typeof type === "string") : [];
}

/** A property every object has, under `svc`. */
function shared(record: AnyRecord, name: string): Json | undefined {
  const group = record["svc"];
  return typeof group === "object" && group !== null && !Array.isArray(group) ? group[name] : undefined;
}
