/** Lines that two people changed differently: shows both versions and lets the user choose for each. */
import { useSignal } from "@preact/signals";
import type { FormAction } from "../parts/form-action.ts";
import type { DocumentDraft } from "./document-draft.ts";
import type { Choice, LineConflict } from "./line-merge.ts";

const CHOICES: readonly (readonly [Choice, string])[] = [
  ["mine", "Keep mine"],
  ["theirs", "Keep theirs"],
  ["both", "Keep both"],
];

export function LineConflicts({ draft, saving }: { draft: DocumentDraft; saving: FormAction }) {
  const conflicts = draft.conflicts.value;
  if (conflicts.length === 0) return null;
  // A new set of conflicts starts with new choices.
  return <Settlement key={JSON.stringify(conflicts)} conflicts={conflicts} draft={draft} saving={saving} />;
}

interface SettlementProps {
  conflicts: readonly LineConflict[];
  draft: DocumentDraft;
  saving: FormAction;
}

function Settlement({ conflicts, draft, saving }: SettlementProps) {
  const choices = useSignal<Readonly<Record<number, Choice>>>({});
  const chosen = conflicts.flatMap((_, index) => choices.value[index] ?? []);
  return (
    <form
      class="note note-warning"
      aria-label="Lines that both changed"
      onSubmit={(event) => {
        event.preventDefault();
        saving.run(() => draft.resolve(chosen));
      }}
    >
      <p role="alert">
        Somebody changed the same lines. Nothing is saved yet: say what stays of them. Everything else that either of
        you wrote is kept, and what you give up here stays in the document's history.
      </p>
      {conflicts.map((conflict, index) => (
        <ConflictField
          // A conflict is identified by its place among the others.
          key={index}
          number={index + 1}
          conflict={conflict}
          choice={choices.value[index]}
          onChoose={(choice) => {
            choices.value = { ...choices.value, [index]: choice };
          }}
        />
      ))}
      <button type="submit" class="primary" disabled={saving.busy || chosen.length < conflicts.length}>
        Save these choices
      </button>
    </form>
  );
}

interface ConflictFieldProps {
  number: number;
  conflict: LineConflict;
  choice: Choice | undefined;
  onChoose: (choice: Choice) => void;
}

function ConflictField({ number, conflict, choice, onChoose }: ConflictFieldProps) {
  return (
    <fieldset class="conflict">
      <legend>Place {number}</legend>
      <div class="versions">
        <Version title="Yours" text={conflict.mine} />
        <Version title="Theirs" text={conflict.theirs} />
      </div>
      {CHOICES.map(([name, title]) => (
        <label key={name} class="choice">
          <input type="radio" name={`conflict-${number}`} checked={choice === name} onChange={() => onChoose(name)} />
          {title}
        </label>
      ))}
    </fieldset>
  );
}

function Version({ title, text }: { title: string; text: string }) {
  return (
    <div>
      <strong>{title}</strong>
      {text === "" ? <p class="faint">The lines are deleted.</p> : <pre>{text}</pre>}
    </div>
  );
}
