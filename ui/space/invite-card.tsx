/** Ways into a space: an invite, adding directly, and the public read-only key. */
import { useSignal } from "@preact/signals";
import type { MemberApi } from "../api/member-api.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { TextField } from "../parts/text-field.tsx";
import { TokenField } from "../parts/token-field.tsx";
import { useLoaded } from "../state/use-loaded.ts";

export function InviteCard({ api, isOwner }: { api: MemberApi; isOwner: boolean }) {
  const { busy, error, run } = useFormAction();
  const made = useSignal(0);
  const invites = useLoaded(api.invites, `${api.streamPath} ${made.value}`);
  const permission = useSignal("");
  const again = (action: () => Promise<unknown>) =>
    run(async () => {
      await action();
      made.value++;
    });
  return (
    <section class="card" aria-labelledby="invite-title">
      <h2 id="invite-title">Invite</h2>
      <form
        class="inline-form"
        onSubmit={(event) => {
          event.preventDefault();
          // An existing invite is replaced only after the user confirms.
          if (invites.value?.length === 0) again(() => api.invite(permission.value));
        }}
      >
        <label for="invite-kind">Whoever has the invite</label>
        <select
          id="invite-kind"
          value={permission}
          onChange={(event) => {
            permission.value = event.currentTarget.value;
          }}
        >
          <option value="">asks to join</option>
          <option value="reader">joins as a reader</option>
          <option value="writer">joins as a writer</option>
        </select>
        {invites.value?.length === 0 && (
          <button type="submit" class="primary" disabled={busy}>
            Make an invite
          </button>
        )}
        {invites.value && invites.value.length > 0 && (
          <ConfirmButton
            label="Make a new invite"
            question="Replace the invite below: it stops working"
            disabled={busy}
            onConfirm={() => again(() => api.invite(permission.value))}
          />
        )}
      </form>
      <ErrorNote error={invites.error ?? error} />
      {invites.value?.map(({ recordId, permission: granted, inviteToken }) => (
        <div key={recordId} class="invite">
          <TokenField
            label={granted === "none" ? "Invite to ask" : `Invite to join as ${granted}`}
            token={inviteToken}
          />
          <ConfirmButton
            label="Revoke"
            question="Revoke it"
            disabled={busy}
            onConfirm={() => again(() => api.revokeInvite(recordId))}
          />
        </div>
      ))}
      <AddMember api={api} />
      {isOwner && <GuestKey api={api} />}
    </section>
  );
}

function AddMember({ api }: { api: MemberApi }) {
  const { busy, error, run } = useFormAction();
  const identity = useSignal("");
  return (
    <form
      class="query-form"
      onSubmit={(event) => {
        event.preventDefault();
        run(async () => {
          await api.add(identity.value.trim(), "writer");
          identity.value = "";
        });
      }}
    >
      <TextField id="add-identity" label="Add somebody as a writer, by account id" text={identity} required />
      <button type="submit" disabled={busy}>
        Add
      </button>
      <ErrorNote error={error} />
    </form>
  );
}

function GuestKey({ api }: { api: MemberApi }) {
  const { busy, error, run } = useFormAction();
  const token = useSignal<string | undefined>(undefined);
  return (
    <div class="invite">
      {token.value !== undefined && <TokenField label="Public key to read" token={token.value} />}
      <button
        type="button"
        disabled={busy}
        onClick={() =>
          run(async () => {
            token.value = (await api.makeGuestKey()).inviteToken;
          })
        }
      >
        Show the public key to read
      </button>
      <ConfirmButton
        label="Revoke the public key"
        question="Shut all guests out"
        disabled={busy}
        onConfirm={() =>
          run(async () => {
            await api.revokeGuestKey();
            token.value = undefined;
          })
        }
      />
      <ErrorNote error={error} />
    </div>
  );
}
