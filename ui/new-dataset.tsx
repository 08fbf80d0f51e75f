/** A form for a type with a dataset of its own, whose records may hold any fields. */
import { useSignal } from "@preact/signals";
import { ErrorNote } from "./error-note.tsx";
import { useFormAction } from "./form-action.ts";
import { typeApi } from "./type-api.ts";

export function NewDataset({ spaceId, onMade }: { spaceId: string; onMade: () => void }) {
  const { busy, error, run } = useFormAction();
  const name = useSignal("");
  const submit = (event: Event) => {
    event.preventDefault();
    run(async () => {
      const slug = toSlug(name.value);
      const { typeId } = await typeApi.create(spaceId, name.value.trim(), slug);
      const fields = [{ key: "title", kind: "string", mutableBy: "any" }];
      await typeApi.createDataset(spaceId, typeId, {
        name: slug,
        displayName: name.value.trim(),
        dynamic: true,
        fields,
      });
      name.value = "";
      onMade();
    });
  };
  return (
    <form class="inline-form" onSubmit={submit}>
      <label for="dataset-name">New type with a dataset</label>
      <input
        id="dataset-name"
        placeholder="Name, such as Tasks"
        required
        value={name}
        onInput={(event) => {
          name.value = event.currentTarget.value;
        }}
      />
      <button type="submit" class="primary" disabled={busy}>
        Create
      </button>
      <ErrorNote error={error} />
    </form>
  );
}

/** A name as datasets and types may have it: `[a-z0-9_][a-z0-9_-]{0,63}`. */
function toSlug(name: string): string {
  const slug = name
    .trim()
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "-");
  return slug.replace(/^-+|-+$/g, "").slice(0, 64) || "dataset";
}
