/** Joins somebody else's space by an invite, or starts a one-to-one space by the other's account id. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api } from "../api/api-client.ts";
import { joinApi } from "../api/member-api.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { TextField } from "../parts/text-field.tsx";
import { refresh } from "../state/session.ts";
import { useLoaded } from "../state/use-loaded.ts";

export function JoinForm() {
  const { busy, error, run } = useFormAction();
  const token = useSignal("");
  const identity = useSignal("");
  const name = useSignal("");
  const account = useLoaded(() => api.account(), "");
  useEffect(() => {
    if (name.peek() === "") name.value = account.value?.metadata?.name ?? "";
  }, [account.value]);
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
      <form class="query-form" onSubmit={submit(() => joinApi.join(token.value.trim(), name.value.trim()))}>
        <TextField id="join-token" label="Invite" text={token} required />
        <TextField id="join-name" label="Your name, for who lets you in" text={name} />
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
