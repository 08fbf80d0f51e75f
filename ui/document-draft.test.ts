import { expect, test } from "bun:test";
import { ApiError } from "./api-client.ts";
import { createDocumentDraft } from "./document-draft.ts";
import type { DocumentChange, TextEdit } from "./editor-api.ts";

const NOTHING: DocumentChange = { inserted: [], updated: [], deleted: [], unchanged: 0 };

/** A document that takes edits as the server does. */
function fakeDocument(content: string) {
  const document = {
    content,
    replaced: 0,
    read: async () => document.content,
    replace: async (next: string) => {
      document.replaced++;
      document.content = next;
      return NOTHING;
    },
    edit: async (edits: readonly TextEdit[]) => {
      for (const { oldText } of edits) {
        if (document.content.split(oldText).length !== 2) throw new ApiError("markdown.no_match", "gone", 400);
      }
      for (const { oldText, newText } of edits) document.content = document.content.replace(oldText, () => newText);
      return { ...NOTHING, updated: ["b"] };
    },
  };
  return document;
}

test("[draft] a clean draft follows the document, a dirty one waits and says that it is behind", async () => {
  const document = fakeDocument("one\n\ntwo");
  const draft = createDocumentDraft(document);
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

test("[draft] a save keeps what others wrote elsewhere, and writes nothing else", async () => {
  const document = fakeDocument("one\n\ntwo\n\nthree");
  const draft = createDocumentDraft(document);
  await draft.reload();
  draft.write("one\n\ntwo\n\nTHREE");
  document.content = "ONE\n\ntwo\n\nthree";
  await draft.save();
  expect(document).toMatchObject({ content: "ONE\n\ntwo\n\nTHREE", replaced: 0 });
  expect([draft.text.value, draft.dirty.value, draft.saved.value?.updated]).toEqual([document.content, false, ["b"]]);
});

test("[draft] edits that lost their place are a conflict, settled by either side", async () => {
  for (const choice of ["overwrite", "discard"] as const) {
    const document = fakeDocument("one\n\ntwo");
    const draft = createDocumentDraft(document);
    await draft.reload();
    draft.write("one\n\nmine");
    document.content = "one\n\ntheirs";
    await draft.save();
    expect([draft.conflict.value, draft.dirty.value, document.content]).toEqual([true, true, "one\n\ntheirs"]);
    await draft[choice]();
    const settled = choice === "overwrite" ? "one\n\nmine" : "one\n\ntheirs";
    expect([draft.text.value, document.content]).toEqual([settled, settled]);
    expect([draft.conflict.value, draft.dirty.value]).toEqual([false, false]);
  }
});

test("[draft] an empty document is written whole, and other faults are thrown", async () => {
  const document = fakeDocument("");
  const draft = createDocumentDraft(document);
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

test("[draft] a document that was empty and is so no more is not overwritten unasked", async () => {
  const document = fakeDocument("");
  const draft = createDocumentDraft(document);
  await draft.reload();
  draft.write("mine");
  document.content = "theirs";
  await draft.save();
  expect([draft.conflict.value, document.content]).toEqual([true, "theirs"]);
});

test("[draft] what is typed while a save is under way stays, unsaved", async () => {
  const document = fakeDocument("one");
  const draft = createDocumentDraft(document);
  await draft.reload();
  draft.write("one\ntwo");
  const saving = draft.save();
  draft.write("one\ntwo\nthree");
  await saving;
  expect([draft.text.value, draft.dirty.value, document.content]).toEqual(["one\ntwo\nthree", true, "one\ntwo"]);
  await draft.save();
  expect([draft.dirty.value, document.content]).toEqual([false, "one\ntwo\nthree"]);
});
