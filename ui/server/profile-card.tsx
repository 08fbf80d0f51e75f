/** The account: its ids, and the profile that others see. */
import { useSignal } from "@preact/signals";
import { type AccountRecord, api } from "../api/api-client.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { Facts } from "../parts/facts.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { TextField } from "../parts/text-field.tsx";
import { useLoaded } from "../state/use-loaded.ts";

export function ProfileCard() {
  const { value: account, error } = useLoaded(() => api.account(), "");
  return (
    <section class="card" aria-labelledby="account-title">
      <h2 id="account-title">Account</h2>
      <ErrorNote error={error} />
      {account && (
        <>
          <Facts
            entries={[
              ["Account id", <code key="id">{account.id}</code>],
              ["This device", <code key="peer">{account.peerId}</code>],
              ["Own space", <code key="tech">{account.techSpaceId}</code>],
            ]}
          />
          <ProfileForm account={account} />
        </>
      )}
    </section>
  );
}

function ProfileForm({ account }: { account: AccountRecord }) {
  const { busy, error, run } = useFormAction();
  const name = useSignal(account.metadata?.name ?? "");
  const description = useSignal(account.metadata?.description ?? "");
  const saved = useSignal(false);
  const submit = (event: Event) => {
    event.preventDefault();
    saved.value = false;
    run(async () => {
      await api.setProfile({ name: name.value.trim(), description: description.value.trim() });
      saved.value = true;
    });
  };
  return (
    <form onSubmit={submit}>
      <TextField id="profile-name" label="Your name, for the people you share spaces with" text={name} />
      <TextField id="profile-description" label="About you" text={description} />
      <ErrorNote error={error} />
      <button type="submit" disabled={busy}>
        Save profile
      </button>
      {saved.value && <span class="faint"> Saved</span>}
    </form>
  );
}
