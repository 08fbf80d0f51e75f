import { expect, test } from "bun:test";
import { ApiError } from "../api/api-client.ts";
import type { DocumentChange, TextEdit } from "../api/editor-api.ts";
import { createDocumentDraft, type DocumentPort } from "./document-draft.ts";
import type { Draft, DraftStore } from "./draft-store.ts";

const NOTHING: DocumentChange = { inserted: [], updated: [], deleted: [], unchanged: 0 };

/** Stores drafts as the browser does. */
function fakeStore(kept?: Draft): DraftStore & { kept: Draft | undefined } {
  const store = {
    kept,
    load: async () => store.kept && { ...store.kept, keptAtMs: 5_000 },
    keep: (draft: Draft | undefined) => {
      store.kept = draft;
    },
    flush: () => {},
  };
  return store;
}
const draftOf = (document: DocumentPort, store = fakeStore()) => createDocumentDraft(document, store);

/** A document that applies edits as the server does. */
function fakeDocument(content: string) {
  const document = {
    content,
    /** Every content it has had. */
    history: [content],
    replaced: 0,
    read: async () => document.content,
    replace: async (next: string) => {
      document.replaced++;
      document.content = next;
      document.history.push(next);
      return NOTHING;
    },
    edit: async (edits: readonly TextEdit[]) => {
      for (const { oldText } of edits) {
        if (document.content.split(oldText).length !== 2) throw new ApiError("markdown.no_match", "gone", 400);
      }
      for (const { oldText, newText } of edits) document.content = document.content.replace(oldText, () => newText);
      document.history.push(document.content);
      return { ...NOTHING, updated: ["b"] };
    },
  };
  return document;
}

test("[PAGE-2] a clean draft follows the document, a dirty one waits and says that it is behind", async () => {
  const document = fakeDocument("one\n\ntwo");
  const draft = draftOf(document);
  await draft.reload();
  expect(draft.text.value).toBe("one\n\ntwo");
  document.content = "one\n\n2";
  await draft.reload();
  expect([draft.text.value, draft.dirty.value, draft.behind.value]).toEqual(["one\n\n2", false, false]);
  draft.write("ONE\n\n2");
  document.content = "one\n\n2\n\nthree";
  await draft.reload();
  expect([draft.text.value, draft.dirty.value, draft.behind.value]).toEqual(["ONE\n\n2", true, true]);
});

test("[PAGE-2] a save keeps what others wrote elsewhere, and writes nothing else", async () => {
  const document = fakeDocument("one\n\ntwo\n\nthree");
  const draft = draftOf(document);
  await draft.reload();
  draft.write("one\n\ntwo\n\nTHREE");
  document.content = "ONE\n\ntwo\n\nthree";
  await draft.save();
  expect(document).toMatchObject({ content: "ONE\n\ntwo\n\nTHREE", replaced: 0 });
  expect([draft.text.value, draft.dirty.value, draft.saved.value?.updated]).toEqual([document.content, false, ["b"]]);
});

test("[PAGE-2] only lines that both changed are decided on; what others wrote elsewhere stays either way", async () => {
  const resolved = { mine: "ONE\n\nmine\n\n3", theirs: "ONE\n\ntheirs\n\n3", both: "ONE\n\ntheirs\nmine\n\n3" };
  for (const choice of ["mine", "theirs", "both"] as const) {
    const document = fakeDocument("one\n\ntwo\n\nthree");
    const draft = draftOf(document);
    await draft.reload();
    draft.write("one\n\nmine\n\n3");
    document.content = "ONE\n\ntheirs\n\nthree";
    await draft.save();
    expect(draft.conflicts.value).toEqual([{ mine: "mine", theirs: "theirs" }]);
    expect([draft.dirty.value, document.content]).toEqual([true, "ONE\n\ntheirs\n\nthree"]);
    await draft.resolve([choice]);
    expect([draft.text.value, document.content]).toEqual([resolved[choice], resolved[choice]]);
    expect([draft.conflicts.value, draft.dirty.value, document.replaced]).toEqual([[], false, 0]);
    // The draft was saved before it was given up.
    expect(document.history.some((content) => content.includes("mine"))).toBe(true);
  }
});

test("[PAGE-2] a conflict that is written away is none; lines that stand beside a change lose nobody's", async () => {
  const document = fakeDocument("one\ntwo\nthree");
  const draft = draftOf(document);
  await draft.reload();
  draft.write("one\nTWO\nthree");
  document.content = "1\ntwo\n3";
  await draft.save();
  expect([document.content, draft.conflicts.value]).toEqual(["1\nTWO\n3", []]);
  draft.write("1\nmine\n3");
  document.content = "1\ntheirs\n3";
  await draft.save();
  expect(draft.conflicts.value.length).toBe(1);
  draft.write("1\ntheirs\n3\nfour");
  expect(draft.conflicts.value).toEqual([]);
  await draft.save();
  expect(document.content).toBe("1\ntheirs\n3\nfour");
});

test("[PAGE-2] what is left unsaved is kept and is there again, as a draft, until it is saved or given up", async () => {
  for (const end of ["save", "discard"] as const) {
    const document = fakeDocument("one\n\ntwo");
    const store = fakeStore();
    const left = draftOf(document, store);
    await left.reload();
    left.write("one\n\nmine");
    left.leave();
    document.content = "ONE\n\ntwo";
    const draft = draftOf(document, store);
    await Promise.all([draft.reload(), draft.reload()]);
    expect([draft.text.value, draft.dirty.value, draft.behind.value]).toEqual(["one\n\nmine", true, true]);
    expect(draft.keptAt.value).toEqual(new Date(5_000));
    await draft[end]();
    expect(document.content).toBe(end === "save" ? "ONE\n\nmine" : "ONE\n\ntwo");
    expect([draft.text.value, draft.keptAt.value, store.kept]).toEqual([document.content, undefined, undefined]);
  }
});

test("[PAGE-2] an empty document is written whole, and other faults are thrown", async () => {
  const document = fakeDocument("");
  const draft = draftOf(document);
  await draft.reload();
  draft.write("# New");
  await draft.save();
  expect(document).toMatchObject({ content: "# New", replaced: 1 });
  draft.write("# Newer");
  document.edit = async () => {
    throw new ApiError("space.read_only", "no", 403);
  };
  await expect(draft.save()).rejects.toMatchObject({ code: "space.read_only" });
});

test("[PAGE-2] a document that was empty and is so no more is not overwritten unasked", async () => {
  const document = fakeDocument("");
  const draft = draftOf(document);
  await draft.reload();
  draft.write("mine");
  document.content = "theirs";
  await draft.save();
  expect([draft.conflicts.value.length, document.content]).toEqual([1, "theirs"]);
});

test("[PAGE-2] what is typed while a save is under way stays, unsaved", async () => {
  const document = fakeDocument("one");
  const draft = draftOf(document);
  await draft.reload();
  draft.write("one\ntwo");
  const saving = draft.save();
  draft.write("one\ntwo\nthree");
  await saving;
  expect([draft.text.value, draft.dirty.value, document.content]).toEqual(["one\ntwo\nthree", true, "one\ntwo"]);
  await draft.save();
  expect([draft.dirty.value, document.content]).toEqual([false, "one\ntwo\nthree"]);
});

/** So many turns of the event loop. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await Bun.sleep(0);
}

test("[PAGE-2] readings that overtake each other while a save is under way end at the newest", async () => {
  const document = fakeDocument("one\ntwo\nthree");
  const draft = draftOf({
    ...document,
    edit: (edits) => document.edit(edits),
    // The first read of a bundle takes longest.
    read: async () => {
      const content = document.content;
      await turns(delay--);
      return content;
    },
  });
  let delay = 40;
  await draft.reload();
  draft.write("one\nmine\nthree");
  document.content = "one\ntheirs\nthree";
  await draft.save();
  const resolving = draft.resolve(["theirs"]);
  for (let n = 0; n < 20; n++) {
    void draft.reload();
    await turns(3);
  }
  await resolving;
  await draft.reload();
  expect([document.content, draft.text.value, draft.dirty.value]).toEqual([
    "one\ntheirs\nthree",
    document.content,
    false,
  ]);
  expect(document.history.some((content) => content.includes("mine"))).toBe(true);
});
