/** A document that somebody is editing while others may edit it too. */
import { type ReadonlySignal, signal } from "@preact/signals";
import { ApiError } from "../api/api-client.ts";
import type { DocumentChange, TextEdit } from "../api/editor-api.ts";
import type { DraftStore } from "./draft-store.ts";
import { type Choice, type LineConflict, mergeLines } from "./line-merge.ts";
import { textEdits } from "./text-edits.ts";

/** The requests a draft makes. */
export interface DocumentPort {
  read(): Promise<string>;
  replace(content: string): Promise<DocumentChange>;
  edit(edits: readonly TextEdit[]): Promise<DocumentChange>;
}

export interface DocumentDraft {
  /** The text in the field; undefined until the document has been read. */
  text: ReadonlySignal<string | undefined>;
  /** Whether something is unsaved. */
  dirty: ReadonlySignal<boolean>;
  /** Others changed the document since the draft began to differ from it. */
  behind: ReadonlySignal<boolean>;
  /** What the last save did. */
  saved: ReadonlySignal<DocumentChange | undefined>;
  /** When the text in the field was stored, if it is an unsaved draft that was restored. */
  keptAt: ReadonlySignal<Date | undefined>;
  /** Lines that others changed differently: the draft is saved once these conflicts are resolved. */
  conflicts: ReadonlySignal<readonly LineConflict[]>;
  write(text: string): void;
  /** Reads the document again; takes it over if nothing is unsaved. */
  reload(): Promise<void>;
  /** Saves the differences; changes by others elsewhere in the document stay. */
  save(): Promise<void>;
  /**
   * Saves with each conflict decided. A version that is given up stays in the history: theirs is there already, and mine
   * is saved first.
   */
  resolve(choices: readonly Choice[]): Promise<void>;
  /** Replaces the draft by the document. */
  discard(): void;
  /** Called when the view is left: stores what is unsaved. */
  leave(): void;
}

/** Returns undefined where the edits would be no shorter than the whole document. */
function lightEdits(base: string, draft: string): TextEdit[] | undefined {
  const edits = textEdits(base, draft);
  const length = edits?.reduce((sum, { oldText, newText }) => sum + oldText.length + newText.length, 0) ?? 0;
  return length > draft.length + EDIT_ALLOWANCE ? undefined : edits;
}

/**
 * Characters by which the edits may be longer than the document, because only edits preserve what others write elsewhere
 * in it.
 */
const EDIT_ALLOWANCE = 50_000;
/** If the document changes this many times during a save, it is left for the next save. */
const SAVE_ATTEMPTS = 5;

const NOT_FOUND_AGAIN = new Set(["markdown.no_match", "markdown.ambiguous_match", "markdown.overlapping_edits"]);

export function createDocumentDraft(port: DocumentPort, store: DraftStore): DocumentDraft {
  const text = signal<string | undefined>(undefined);
  const dirty = signal(false);
  const behind = signal(false);
  const conflicts = signal<readonly LineConflict[]>([]);
  const saved = signal<DocumentChange | undefined>(undefined);
  const keptAt = signal<Date | undefined>(undefined);
  /** The document on which the draft is based, and the document as last read. */
  let base = "";
  let latest = "";
  let reads = 0;
  let newestRead = 0;
  /** A save found lines that both sides changed. */
  let stuck = false;
  let restoring: Promise<void> | undefined;

  function update(next: string): void {
    text.value = next;
    dirty.value = next !== base;
    behind.value = dirty.value && latest !== base;
    if (!dirty.value) keptAt.value = undefined;
    const found = stuck && behind.value ? mergeLines(base, next, latest).conflicts : [];
    stuck = found.length > 0;
    conflicts.value = found;
    store.keep(dirty.value ? { text: next, base } : undefined);
  }

  function takeOver(content: string): void {
    base = latest = content;
    stuck = false;
    update(content);
  }

  async function restore(): Promise<void> {
    const kept = await store.load();
    if (!kept) return;
    base = latest = kept.base;
    keptAt.value = new Date(kept.keptAtMs);
    update(kept.text);
  }

  /** When it resolves, `latest` is at least as new as the document was at the call. */
  async function readLatest(): Promise<void> {
    const read = ++reads;
    const content = await port.read();
    // A later read was answered first, so this answer is older than what is here.
    if (read < newestRead) return;
    newestRead = read;
    latest = content;
  }

  async function reload(): Promise<void> {
    restoring ??= restore();
    await restoring;
    await readLatest();
    const shown = text.peek();
    if (shown !== undefined && dirty.peek() && shown !== latest) update(shown);
    else takeOver(latest);
  }

  async function finish(sent: string, change: DocumentChange): Promise<void> {
    saved.value = change;
    await readLatest();
    // What was typed during the save is now a draft based on the saved document.
    if (text.peek() === sent) takeOver(latest);
    else {
      base = sent;
      update(text.peek() ?? latest);
    }
  }

  /** Writes the draft over its base. Throws one of `NOT_FOUND_AGAIN` when the document no longer equals the base. */
  async function writeOut(draft: string): Promise<DocumentChange> {
    const edits = lightEdits(base, draft);
    if (edits !== undefined) return await port.edit(edits);
    if ((await port.read()) === base) return await port.replace(draft);
    throw new ApiError("markdown.no_match", "The document was changed elsewhere; save again", 400);
  }

  async function save(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const draft = text.peek();
      if (draft === undefined || draft === base) return;
      try {
        await finish(draft, await writeOut(draft));
        return;
      } catch (fault) {
        if (!(fault instanceof ApiError) || !NOT_FOUND_AGAIN.has(fault.code)) throw fault;
        await reload();
        if (!moveToLatest() || attempt === SAVE_ATTEMPTS) return;
      }
    }
  }

  /** Rebases the draft onto the latest document. Returns false when both changed the same lines. */
  function moveToLatest(): boolean {
    const draft = text.peek() ?? latest;
    const merge = mergeLines(base, draft, latest);
    stuck = merge.conflicts.length > 0;
    if (stuck) {
      update(draft);
      return false;
    }
    base = latest;
    update(merge.resolve([]));
    return true;
  }

  async function resolve(choices: readonly Choice[]): Promise<void> {
    const merge = mergeLines(base, text.peek() ?? latest, latest);
    const [mine, wanted] = [merge.resolve([]), merge.resolve(choices)];
    const givesUpMine = merge.conflicts.some((one, index) => choices[index] === "theirs" && one.mine !== "");
    base = latest;
    stuck = false;
    update(givesUpMine ? mine : wanted);
    await save();
    if (!givesUpMine || conflicts.peek().length > 0) return;
    update(mergeLines(mine, wanted, text.peek() ?? mine).resolve([]));
    await save();
  }

  return {
    text,
    dirty,
    behind,
    saved,
    keptAt,
    conflicts,
    write: update,
    reload,
    save,
    resolve,
    discard: () => takeOver(latest),
    leave: store.flush,
  };
}
