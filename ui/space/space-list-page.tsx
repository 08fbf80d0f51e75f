/** All spaces of the account, and a form for a new one. */
import { useSignal } from "@preact/signals";
import type { SpaceInfo } from "../../src/protocol/space.ts";
import { api } from "../api/api-client.ts";
import { displayValue } from "../parts/display-value.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { isMe } from "../parts/people.ts";
import { spaceTitle } from "../parts/space-title.ts";
import { go, href } from "../state/router.ts";
import { refresh, spaces } from "../state/session.ts";
import { whyClosed } from "./closed-space.tsx";
import { JoinForm } from "./join-form.tsx";
import { PendingSpace } from "./pending-space.tsx";

export function SpaceListPage() {
  const all = spaces.value ?? [];
  const shown = all.filter((space) => space.status !== "deleted");
  const ended = all.filter(({ status, ended: end }) => status === "deleted" && end && !isMe(end.by));
  return (
    <>
      <h1>Spaces</h1>
      <NewSpace />
      <JoinForm />
      {spaces.value && shown.length === 0 && (
        <p class="empty">No spaces yet. A space holds objects and is shared as a whole.</p>
      )}
      <ul class="cards">
        {shown.map((space) => (
          <SpaceCard key={space.id} space={space} />
        ))}
      </ul>
      {ended.length > 0 && (
        <section aria-labelledby="ended-title">
          <h2 id="ended-title">Ended by others</h2>
          <ul class="fields">
            {ended.map((space) => (
              <li key={space.id}>
                <strong>{spaceTitle(space)}</strong>: {whyClosed(space)}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function SpaceCard({ space }: { space: SpaceInfo }) {
  const title = spaceTitle(space);
  return (
    <li class="card link-card">
      <h2>{space.status === "active" ? <a href={href("spaces", space.id)}>{title}</a> : title}</h2>
      {space.description && <p>{space.description}</p>}
      <p class="tags">
        <span class="tag">{space.ownRole}</span>
        {space.status !== "active" && <span class="tag">{space.status.replaceAll("_", " ")}</span>}
        {space.derived && <span class="tag">built in</span>}
        {space.spaceType === "svc.onetoone" && <span class="tag">one to one</span>}
      </p>
      <p class="faint">Since {displayValue(space.createdAt)}</p>
      <PendingSpace space={space} />
    </li>
  );
}

function NewSpace() {
  const { busy, error, run } = useFormAction();
  const name = useSignal("");
  const submit = (event: Event) => {
    event.preventDefault();
    run(async () => {
      const { id } = await api.createSpace(name.value.trim());
      await refresh();
      go("spaces", id);
    });
  };
  return (
    <form class="inline-form" onSubmit={submit}>
      <label for="space-name">New space</label>
      <input
        id="space-name"
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
      <ErrorNote error={error} />
    </form>
  );
}
