/** A form for a type with its own dataset, whose records may hold any fields. */
import { useSignal } from "@preact/signals";
import type { JsonObject } from "../../src/protocol/json.ts";
import { typeApi } from "../api/type-api.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";

export function NewDataset({ spaceId, onMade }: { spaceId: string; onMade: () => void }) {
  const { busy, error, run } = useFormAction();
  const name = useSignal("");
  const mutableBy = useSignal<MutableBy>("any");
  const submit = (event: Event) => {
    event.preventDefault();
    run(async () => {
      const slug = toSlug(name.value);
      const { typeId } = await typeApi.create(spaceId, name.value.trim(), slug);
      await typeApi.createDataset(spaceId, typeId, {
        name: slug,
        displayName: name.value.trim(),
        dynamic: true,
        fields: fieldsOf(mutableBy.value),
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
      <label for="dataset-mutable">Its title can be changed by</label>
      <select
        id="dataset-mutable"
        aria-describedby="dataset-mutable-hint"
        value={mutableBy}
        onChange={(event) => {
          mutableBy.value = event.currentTarget.value as MutableBy;
        }}
      >
        {CHOICES.map(([choice, title]) => (
          <option key={choice} value={choice}>
            {title}
          </option>
        ))}
      </select>
      <button type="submit" class="primary" disabled={busy}>
        Create
      </button>
      <p id="dataset-mutable-hint" class="faint hint">
        This is decided now: <code>mutableBy</code> of a field never changes. To change it, the field is removed and
        added anew.
      </p>
      <ErrorNote error={error} />
    </form>
  );
}

type MutableBy = "any" | "author" | "never";

const CHOICES: readonly (readonly [MutableBy, string])[] = [
  ["any", "everybody who may write (any)"],
  ["author", "who made the record (author)"],
  ["never", "nobody: it is written once (never)"],
];

/** Where only a record's author may change it, the author must be a field. */
function fieldsOf(mutableBy: MutableBy): JsonObject[] {
  const title = { key: "title", kind: "string", mutableBy };
  return mutableBy === "author" ? [title, { key: "creator", kind: "string", stamp: "creator" }] : [title];
}

/** Converts a name to one that datasets and types may have: `[a-z0-9_][a-z0-9_-]{0,63}`. */
function toSlug(name: string): string {
  const slug = name
    .trim()
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "-");
  return slug.replace(/^-+|-+$/g, "").slice(0, 64) || "dataset";
}
