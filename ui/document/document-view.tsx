/** A document as markdown: edited on one side, shown on the other, saved as edits. */
import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { type AnyRecord, type ApiError, toApiError } from "../api/api-client.ts";
import { type DocumentChange, editorApi } from "../api/editor-api.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { MarkdownView } from "../parts/markdown-view.tsx";
import { createDocumentDraft, type DocumentDraft } from "./document-draft.ts";
import { createDraftStore } from "./draft-store.ts";
import { LineConflicts } from "./line-conflicts.tsx";

type Mode = "write" | "both" | "read";
const MODES: readonly (readonly [Mode, string])[] = [
  ["write", "Write"],
  ["both", "Both"],
  ["read", "Read"],
];
const PREVIEW_DELAY_MS = 80;
const RELOAD_DELAY_MS = 60;
const TWO_COLUMNS_PX = 860;

export interface DocumentViewProps {
  spaceId: string;
  objectId: string;
  /** The object's own row: every write to the document changes it. */
  row: AnyRecord;
}

export function DocumentView({ spaceId, objectId, row }: DocumentViewProps) {
  const draft = useMemo(
    () =>
      createDocumentDraft(
        {
          read: () => editorApi.read(spaceId, objectId),
          replace: (content) => editorApi.replace(spaceId, objectId, content),
          edit: (edits) => editorApi.edit(spaceId, objectId, edits),
        },
        createDraftStore(objectId),
      ),
    [spaceId, objectId],
  );
  const loadError = useSignal<ApiError | undefined>(undefined);
  const saving = useFormAction();
  const mode = useSignal<Mode>(window.innerWidth < TWO_COLUMNS_PX ? "write" : "both");
  useEffect(() => {
    const reload = () =>
      draft.reload().then(
        () => {
          loadError.value = undefined;
        },
        (fault: unknown) => {
          loadError.value = toApiError(fault);
        },
      );
    const timer = setTimeout(() => void reload(), RELOAD_DELAY_MS);
    return () => clearTimeout(timer);
  }, [draft, row]);
  useUnsavedGuard(draft);
  const text = draft.text.value;
  return (
    <section class="card document" aria-label="Document">
      <div class="document-bar">
        <fieldset class="segments" aria-label="Layout">
          {MODES.map(([name, title]) => (
            <button
              key={name}
              type="button"
              aria-pressed={mode.value === name}
              onClick={() => {
                mode.value = name;
              }}
            >
              {title}
            </button>
          ))}
        </fieldset>
        <span class="grow" />
        <SaveState draft={draft} />
        <button
          type="button"
          class="primary"
          disabled={saving.busy || !draft.dirty.value}
          onClick={() => saving.run(draft.save)}
        >
          {saving.busy ? "Saving…" : "Save"}
        </button>
      </div>
      <KeptNote draft={draft} />
      <LineConflicts draft={draft} saving={saving} />
      <ErrorNote error={saving.error ?? loadError.value} />
      {text === undefined ? (
        <p class="faint">Loading…</p>
      ) : (
        <div class={`panes panes-${mode.value}`}>
          {mode.value !== "read" && <TextPane draft={draft} text={text} onSave={() => saving.run(draft.save)} />}
          {mode.value !== "write" && <Preview text={text} spaceId={spaceId} />}
        </div>
      )}
    </section>
  );
}

function SaveState({ draft }: { draft: DocumentDraft }) {
  return (
    <span class="faint save-state" role="status">
      {saveState(draft)}
    </span>
  );
}

function saveState({ conflicts, behind, dirty, keptAt, saved }: DocumentDraft): string {
  if (conflicts.value.length > 0) return "Not saved; the same lines were changed elsewhere";
  if (behind.value) return "Not saved; changed elsewhere meanwhile, which a save keeps";
  if (dirty.value) return keptAt.value ? "Draft, not saved" : "Not saved";
  return saved.value ? describeChange(saved.value) : "";
}

/** What a save did, in words. */
function describeChange({ inserted, updated, deleted, unchanged }: DocumentChange): string {
  const parts = [
    [inserted.length, "inserted"],
    [updated.length, "updated"],
    [deleted.length, "deleted"],
  ] as const;
  const done = parts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  return `Saved: ${done.length > 0 ? done.join(", ") : "nothing to write"}, ${unchanged} unchanged`;
}

/** Tells the user that the text in the field is an unsaved draft from earlier. */
function KeptNote({ draft }: { draft: DocumentDraft }) {
  const keptAt = draft.keptAt.value;
  if (!keptAt) return null;
  return (
    <div class="note note-warning" role="status">
      <p>This is your draft of {keptAt.toLocaleString()}. It is kept in this browser and not saved to the document.</p>
      <ConfirmButton label="Give the draft up" question="Lose it for good" onConfirm={draft.discard} />
    </div>
  );
}

function TextPane(props: { draft: DocumentDraft; text: string; onSave: () => void }) {
  const { draft, text, onSave } = props;
  const field = useRef<HTMLTextAreaElement>(null);
  const shown = useRef(text);
  useLayoutEffect(() => {
    const element = field.current;
    if (element && element.value !== text) {
      const caret = moveCaret(element.value, text, element.selectionStart);
      element.value = text;
      element.setSelectionRange(caret, caret);
    }
    shown.current = text;
  }, [text]);
  return (
    <textarea
      ref={field}
      class="text-pane"
      aria-label="Markdown"
      spellcheck
      placeholder={"# A title\n\nWrite in markdown; Ctrl+S saves."}
      defaultValue={shown.current}
      onInput={(event) => draft.write(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key !== "s" || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        onSave();
      }}
    />
  );
}

/** Where the caret belongs after the text was replaced: it stays before or after the changed part. */
function moveCaret(before: string, after: string, caret: number): number {
  let same = 0;
  while (same < Math.min(before.length, after.length) && before[same] === after[same]) same++;
  return caret <= same ? caret : Math.max(same, after.length - (before.length - caret));
}

function Preview({ text, spaceId }: { text: string; spaceId: string }) {
  const shown = useSignal(text);
  useEffect(() => {
    const timer = setTimeout(() => {
      shown.value = text;
    }, PREVIEW_DELAY_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <div class="reader">
      {shown.value.trim() === "" ? (
        <p class="faint">Nothing written yet.</p>
      ) : (
        <MarkdownView text={shown.value} spaceId={spaceId} />
      )}
    </div>
  );
}

/** Leaving the view keeps what is unsaved; before the page itself is left, the browser asks. */
function useUnsavedGuard(draft: DocumentDraft): void {
  useEffect(() => {
    addEventListener("pagehide", draft.leave);
    return () => {
      removeEventListener("pagehide", draft.leave);
      draft.leave();
    };
  }, [draft]);
  useSignalEffect(() => {
    if (!draft.dirty.value) return;
    const hold = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", hold);
    return () => removeEventListener("beforeunload", hold);
  });
}
