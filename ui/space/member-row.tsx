/** One member: who it is, its permission, and the actions on it. */
import { useSignal } from "@preact/signals";
import type { Member } from "../../src/protocol/member.ts";
import { type MemberApi, PERMISSIONS } from "../api/member-api.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { isMe, personName } from "../parts/people.ts";

export interface MemberRowProps {
  member: Member;
  api: MemberApi;
  /** Whether this account may manage members. */
  manages: boolean;
  onDone: () => void;
}

export function MemberRow({ member, api, manages, onDone }: MemberRowProps) {
  const { busy, error, run } = useFormAction();
  const perform = (action: () => Promise<void>) =>
    run(async () => {
      await action();
      onDone();
    });
  const { identity, permission, status, requestRecordId } = member;
  const fixed = isMe(identity) || permission === "owner" || permission === "guest";
  return (
    <li class="card member">
      <div>
        <strong>{nameOf(member)}</strong>{" "}
        <span class="tag">{status === "active" ? permission : (STATUS_WORDS[status] ?? status)}</span>
        <br />
        <code class="faint">{identity}</code>
      </div>
      <span class="grow" />
      {manages && requestRecordId !== undefined && (
        <Answer
          busy={busy}
          onAccept={(granted) => perform(() => api.accept(requestRecordId, granted))}
          onDecline={() => perform(() => api.decline(identity))}
        />
      )}
      {manages && status === "active" && !fixed && (
        <>
          <PermissionChoice
            label={`What ${member.name || "this member"} may do`}
            value={permission}
            disabled={busy}
            onChange={(next) => perform(() => api.setPermission(identity, next))}
          />
          <ConfirmButton
            label="Remove"
            question="Remove from the space"
            disabled={busy}
            onConfirm={() => perform(() => api.remove(identity))}
          />
        </>
      )}
      <ErrorNote error={error} />
    </li>
  );
}

const STATUS_WORDS: Partial<Record<Member["status"], string>> = {
  joining: "asks to join",
  removing: "is leaving",
};

function nameOf({ identity, name, status }: Member): string {
  if (isMe(identity)) return "You";
  if (name) return name;
  return status === "joining" ? `Somebody without a name (${personName(identity)})` : personName(identity);
}

function Answer(props: { busy: boolean; onAccept: (permission: string) => void; onDecline: () => void }) {
  const granted = useSignal<string>("writer");
  return (
    <>
      <PermissionChoice
        label="What the newcomer may do"
        value={granted.value}
        disabled={props.busy}
        onChange={(next) => {
          granted.value = next;
        }}
      />
      <button type="button" class="primary" disabled={props.busy} onClick={() => props.onAccept(granted.value)}>
        Accept
      </button>
      <button type="button" disabled={props.busy} onClick={props.onDecline}>
        Decline
      </button>
    </>
  );
}

interface PermissionChoiceProps {
  label: string;
  value: string;
  disabled: boolean;
  onChange: (permission: string) => void;
}

function PermissionChoice({ label, value, disabled, onChange }: PermissionChoiceProps) {
  return (
    <select
      class="short"
      aria-label={label}
      value={value}
      disabled={disabled}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      {PERMISSIONS.map((permission) => (
        <option key={permission} value={permission}>
          {permission}
        </option>
      ))}
    </select>
  );
}
