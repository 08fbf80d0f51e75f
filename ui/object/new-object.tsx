/** A form for a new object: a document, a chat, or an object of one of the space's own types. */
import { useSignal } from "@preact/signals";
import { api } from "../api/api-client.ts";
import { type TypeInfo, typeApi } from "../api/type-api.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { go } from "../state/router.ts";
import { useLoaded } from "../state/use-loaded.ts";

/** Kinds that every space offers, by the type that defines them. */
const KINDS: readonly (readonly [type: string, title: string])[] = [
  ["page", "Document"],
  ["chat", "Chat"],
  ["", "Plain object"],
];

export function NewObject({ spaceId }: { spaceId: string }) {
  const { busy, error, run } = useFormAction();
  const types = useLoaded(() => typeApi.list(spaceId), spaceId);
  const name = useSignal("");
  const type = useSignal("page");
  const submit = (event: Event) => {
    event.preventDefault();
    run(async () => {
      const { id } = await api.createObject(spaceId, name.value.trim(), type.value === "" ? [] : [type.value]);
      go("spaces", spaceId, "objects", id);
    });
  };
  return (
    <form class="inline-form" onSubmit={submit}>
      <label for="object-type">New</label>
      <select
        id="object-type"
        class="short"
        value={type}
        onChange={(event) => {
          type.value = event.currentTarget.value;
        }}
      >
        {KINDS.map(([id, title]) => (
          <option key={id} value={id}>
            {title}
          </option>
        ))}
        {(types.value ?? []).filter(isOwn).map(({ id, name: title, xKey }) => (
          <option key={id} value={id}>
            {title || xKey || id}
          </option>
        ))}
      </select>
      <input
        id="object-name"
        aria-label="Name of the new object"
        placeholder="Name"
        required
        value={name}
        onInput={(event) => {
          name.value = event.currentTarget.value;
        }}
      />
      <button type="submit" class="primary" disabled={busy}>
        Create
      </button>
      <ErrorNote error={error ?? types.error} />
    </form>
  );
}

function isOwn({ builtIn }: TypeInfo): boolean {
  return builtIn !== true;
}
