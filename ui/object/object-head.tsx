/** An object's name and types. The name can be changed in place, and the object can be deleted. */
import { useSignal } from "@preact/signals";
import { type AnyRecord, api } from "../api/api-client.ts";
import { objectName, objectTitle, objectTypes, TYPE_MARKER } from "../api/object-row.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { spaceTitle } from "../parts/space-title.ts";
import { useTypeNames } from "../parts/use-type-names.ts";
import { go, href } from "../state/router.ts";
import { spaces } from "../state/session.ts";

export function ObjectHead({ spaceId, row }: { spaceId: string; row: AnyRecord }) {
  const { busy, error, run } = useFormAction();
  const editing = useSignal<string | undefined>(undefined);
  const space = spaces.value?.find(({ id }) => id === spaceId);
  const typeName = useTypeNames(spaceId);
  const rename = (event: Event) => {
    event.preventDefault();
    run(async () => {
      await api.renameObject(spaceId, row.id, editing.value?.trim() ?? "");
      editing.value = undefined;
    });
  };
  return (
    <>
      <nav class="crumbs" aria-label="Where you are">
        <a href={href("spaces")}>Spaces</a>
        <a href={href("spaces", spaceId)}>{space ? spaceTitle(space) : "Space"}</a>
      </nav>
      {editing.value === undefined ? (
        <div class="head-line">
          <h1>{objectTitle(row)}</h1>
          <button
            type="button"
            class="plain"
            onClick={() => {
              editing.value = objectName(row);
            }}
          >
            Rename
          </button>
          {!objectTypes(row).includes(TYPE_MARKER) && (
            <ConfirmButton
              label="Delete"
              question="Delete it for everybody"
              disabled={busy}
              onConfirm={() =>
                run(async () => {
                  await api.deleteObject(spaceId, row.id);
                  go("spaces", spaceId);
                })
              }
            />
          )}
        </div>
      ) : (
        <form class="inline-form" onSubmit={rename}>
          <input
            aria-label="Name"
            value={editing.value}
            onInput={(event) => {
              editing.value = event.currentTarget.value;
            }}
          />
          <button type="submit" class="primary" disabled={busy}>
            Rename
          </button>
          <button
            type="button"
            onClick={() => {
              editing.value = undefined;
            }}
          >
            Cancel
          </button>
        </form>
      )}
      <ErrorNote error={error} />
      <p class="tags">
        {objectTypes(row).map((type) => (
          <span class="tag" key={type}>
            {typeName(type)}
          </span>
        ))}
      </p>
    </>
  );
}
