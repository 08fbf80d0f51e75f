/** Facts about a space. Its name can be changed; the space can be deleted or left. */
import { useSignal } from "@preact/signals";
import type { SpaceInfo } from "../../src/protocol/space.ts";
import { api } from "../api/api-client.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { displayValue } from "../parts/display-value.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { Facts } from "../parts/facts.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { TextField } from "../parts/text-field.tsx";
import { go } from "../state/router.ts";
import { refresh } from "../state/session.ts";

export function SpaceAbout({ space }: { space: SpaceInfo }) {
  const { busy, error, run } = useFormAction();
  const name = useSignal(space.name ?? "");
  const description = useSignal(space.description ?? "");
  const writes = space.ownRole === "owner" || space.ownRole === "admin" || space.ownRole === "writer";
  const submit = (event: Event) => {
    event.preventDefault();
    run(async () => {
      await api.renameSpace(space.id, name.value.trim(), description.value.trim());
      await refresh();
    });
  };
  return (
    <>
      <section class="card">
        <Facts
          entries={[
            ["Your role", space.ownRole],
            ["Status", space.status],
            ["Since", displayValue(space.createdAt)],
            ["Space id", <code key="id">{space.id}</code>],
            ["Created by", space.author && <code key="author">{space.author}</code>],
            ["Settings", space.settings && <code key="settings">{JSON.stringify(space.settings)}</code>],
          ]}
        />
        {writes && (
          <form onSubmit={submit}>
            <TextField id="space-name" label="Name" text={name} />
            <TextField id="space-description" label="Description" text={description} />
            <button type="submit" disabled={busy}>
              Save
            </button>
          </form>
        )}
        <ErrorNote error={error} />
      </section>
      {space.derived !== true && (
        <ConfirmButton
          label={space.ownRole === "owner" ? "Delete this space" : "Leave this space"}
          question={space.ownRole === "owner" ? "Delete it for everybody, for ever" : "Leave and drop its data here"}
          disabled={busy}
          onConfirm={() =>
            run(async () => {
              await api.deleteSpace(space.id);
              await refresh();
              go("spaces");
            })
          }
        />
      )}
    </>
  );
}
