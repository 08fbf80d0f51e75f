/** Into a space of somebody else: by an invite, or by the other's account id for a space of two. */
import { useSignal } from "@preact/signals";
import { ErrorNote } from "./error-note.tsx";
import { useFormAction } from "./form-action.ts";
import { joinApi } from "./member-api.ts";
import { refresh } from "./session.ts";
import { TextField } from "./text-field.tsx";

export function JoinForm() {
  const { busy, error, run } = useFormAction();
  const token = useSignal("");
  const identity = useSignal("");
  const submit = (action: () => Promise<unknown>) => (event: Event) => {
    event.preventDefault();
    run(async () => {
      await action();
      token.value = identity.value = "";
      await refresh();
    });
  };
  return (
    <details class="card">
      <summary>Join a space, or talk to one person</summary>
      <form class="query-form" onSubmit={submit(() => joinApi.join(token.value.trim()))}>
        <TextField id="join-token" label="Invite" text={token} required />
        <button type="submit" disabled={busy}>
          Join
        </button>
      </form>
      <form class="query-form" onSubmit={submit(() => joinApi.startOneToOne(identity.value.trim()))}>
        <TextField id="join-identity" label="Account id of the other person" text={identity} required />
        <button type="submit" disabled={busy}>
          Start
        </button>
      </form>
      <ErrorNote error={error} />
    </details>
  );
}
