/** A document while somebody writes in it and others may write in it too. */
import { type ReadonlySignal, signal } from "@preact/signals";
import { ApiError } from "./api-client.ts";
import type { DocumentChange, TextEdit } from "./editor-api.ts";
import { textEdits } from "./text-edits.ts";

/** The requests a draft makes. */
export interface DocumentPort {
  read(): Promise<string>;
  replace(content: string): Promise<DocumentChange>;
  edit(edits: readonly TextEdit[]): Promise<DocumentChange>;
}

export interface DocumentDraft {
  /** What stands in the field; undefined until the document has been read. */
  text: ReadonlySignal<string | undefined>;
  /** Something is not saved. */
  dirty: ReadonlySignal<boolean>;
  /** Others changed the document since the draft began to differ from it. */
  behind: ReadonlySignal<boolean>;
  /** What the last save did. */
  saved: ReadonlySignal<DocumentChange | undefined>;
  /** The last save could not be put into what others wrote: one of the two has to go. */
  conflict: ReadonlySignal<boolean>;
  write(text: string): void;
  /** Reads the document again: taken over where nothing is unsaved. */
  reload(): Promise<void>;
  /** Saves what differs; what others changed elsewhere in the document stays. */
  save(): Promise<void>;
  /** Saves the draft as the whole document. */
  overwrite(): Promise<void>;
  /** Gives the draft up for the document. */
  discard(): void;
}

/** Undefined where sending the whole document is no more than sending the edits. */
function lightEdits(base: string, draft: string): TextEdit[] | undefined {
  const edits = textEdits(base, draft);
  const length = edits?.reduce((sum, { oldText, newText }) => sum + oldText.length + newText.length, 0) ?? 0;
  return length > draft.length + EDIT_ALLOWANCE ? undefined : edits;
}

/** Characters by which edits may be longer than the document: they alone keep what is written elsewhere. */
const EDIT_ALLOWANCE = 50_000;

const LOST_PLACE = new Set(["markdown.no_match", "markdown.ambiguous_match", "markdown.overlapping_edits"]);

export function createDocumentDraft(port: DocumentPort): DocumentDraft {
  const text = signal<string | undefined>(undefined);
  const dirty = signal(false);
  const behind = signal(false);
  const conflict = signal(false);
  const saved = signal<DocumentChange | undefined>(undefined);
  /** The document the draft was begun from, and as it was when last read. */
  let base = "";
  let latest = "";
  let reads = 0;

  function update(next: string): void {
    text.value = next;
    dirty.value = next !== base;
    behind.value = dirty.value && latest !== base;
  }

  function takeOver(content: string): void {
    base = latest = content;
    conflict.value = false;
    update(content);
  }

  async function reload(): Promise<void> {
    const read = ++reads;
    const content = await port.read();
    // An answer that was overtaken is older than what is shown.
    if (read !== reads) return;
    latest = content;
    if (dirty.peek()) update(text.peek() ?? content);
    else takeOver(content);
  }

  async function finish(sent: string, change: DocumentChange): Promise<void> {
    saved.value = change;
    conflict.value = false;
    const read = ++reads;
    const content = await port.read();
    if (read === reads) latest = content;
    // What was typed while the save was under way is a draft of the document as it is now.
    if (text.peek() === sent) takeOver(latest);
    else {
      base = sent;
      update(text.peek() ?? latest);
    }
  }

  async function save(): Promise<void> {
    const draft = text.peek();
    if (draft === undefined || draft === base) return;
    const edits = lightEdits(base, draft);
    try {
      if (edits !== undefined) await finish(draft, await port.edit(edits));
      else if ((await port.read()) === base) await overwrite();
      else throw new ApiError("markdown.no_match", "The document was changed elsewhere", 400);
    } catch (fault) {
      if (!(fault instanceof ApiError) || !LOST_PLACE.has(fault.code)) throw fault;
      conflict.value = true;
      await reload();
    }
  }

  async function overwrite(): Promise<void> {
    const draft = text.peek();
    if (draft !== undefined) await finish(draft, await port.replace(draft));
  }

  return {
    text,
    dirty,
    behind,
    saved,
    conflict,
    write: update,
    reload,
    save,
    overwrite,
    discard: () => takeOver(latest),
  };
}
