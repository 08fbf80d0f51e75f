/** Shown while no account is open: create one, restore one, or open one whose wallet is in the data root. */
import { useSignal } from "@preact/signals";
import type { AuthBody } from "../../src/protocol/meta.ts";
import { api } from "../api/api-client.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { authStatus, newMnemonic, refresh } from "../state/session.ts";

export function AccountSetup() {
  const wallets = authStatus.value?.accounts ?? [];
  return (
    <div class="setup">
      <h1>Whose workspace is this?</h1>
      <p class="lead">
        This server has no account open. An account is a key on this machine; nobody else holds a copy, and nothing is
        registered anywhere.
      </p>
      {wallets.length > 0 && <OpenWallet ids={wallets.map((wallet) => wallet.id)} />}
      <CreateAccount />
      <RestoreAccount />
    </div>
  );
}

async function authenticate(body: AuthBody): Promise<void> {
  const { mnemonic } = await api.authenticate(body);
  newMnemonic.value = mnemonic;
  await refresh();
}

function CreateAccount() {
  const { busy, error, run } = useFormAction();
  const passkey = useSignal("");
  const submit = (event: Event) => {
    event.preventDefault();
    run(() => authenticate(passkey.value ? { passkey: passkey.value } : {}));
  };
  return (
    <form class="card" onSubmit={submit}>
      <h2>Create an account</h2>
      <p>You get twelve words. They are the only way back to your data if this machine is lost.</p>
      <PasskeyField id="create-passkey" passkey={passkey} label="Passkey for the wallet file (optional)" />
      <ErrorNote error={error} />
      <button type="submit" class="primary" disabled={busy}>
        {busy ? "Creating…" : "Create account"}
      </button>
    </form>
  );
}

function RestoreAccount() {
  const { busy, error, run } = useFormAction();
  const mnemonic = useSignal("");
  const index = useSignal("");
  const passkey = useSignal("");
  const submit = (event: Event) => {
    event.preventDefault();
    run(() =>
      authenticate({
        mnemonic: mnemonic.value.trim().split(/\s+/).join(" "),
        ...(index.value === "" ? {} : { index: Number(index.value) }),
        ...(passkey.value === "" ? {} : { passkey: passkey.value }),
      }),
    );
  };
  return (
    <form class="card" onSubmit={submit}>
      <h2>Restore an account</h2>
      <label for="restore-mnemonic">Your twelve words</label>
      <textarea
        id="restore-mnemonic"
        rows={3}
        required
        spellcheck={false}
        autocomplete="off"
        autocapitalize="none"
        value={mnemonic}
        onInput={(event) => {
          mnemonic.value = event.currentTarget.value;
        }}
      />
      <details>
        <summary>More</summary>
        <label for="restore-index">Derivation index (1 unless you know otherwise)</label>
        <input
          id="restore-index"
          type="number"
          min={0}
          placeholder="1"
          value={index}
          onInput={(event) => {
            index.value = event.currentTarget.value;
          }}
        />
        <PasskeyField id="restore-passkey" passkey={passkey} label="Passkey for the wallet file (optional)" />
      </details>
      <ErrorNote error={error} />
      <button type="submit" disabled={busy}>
        {busy ? "Restoring…" : "Restore account"}
      </button>
    </form>
  );
}

function OpenWallet({ ids }: { ids: string[] }) {
  const { busy, error, run } = useFormAction();
  const chosen = useSignal(ids[0] ?? "");
  const passkey = useSignal("");
  const submit = (event: Event) => {
    event.preventDefault();
    run(() => authenticate({ accountId: chosen.value, ...(passkey.value === "" ? {} : { passkey: passkey.value }) }));
  };
  return (
    <form class="card" onSubmit={submit}>
      <h2>Open an account of this machine</h2>
      <label for="open-account">Account</label>
      <select
        id="open-account"
        value={chosen}
        onChange={(event) => {
          chosen.value = event.currentTarget.value;
        }}
      >
        {ids.map((id) => (
          <option key={id} value={id}>
            {id}
          </option>
        ))}
      </select>
      <PasskeyField id="open-passkey" passkey={passkey} label="Passkey, if its wallet has one" />
      <ErrorNote error={error} />
      <button type="submit" class="primary" disabled={busy}>
        {busy ? "Opening…" : "Open account"}
      </button>
    </form>
  );
}

function PasskeyField(props: { id: string; label: string; passkey: { value: string } }) {
  return (
    <>
      <label for={props.id}>{props.label}</label>
      <input
        id={props.id}
        type="password"
        autocomplete="off"
        value={props.passkey.value}
        onInput={(event) => {
          props.passkey.value = event.currentTarget.value;
        }}
      />
    </>
  );
}
