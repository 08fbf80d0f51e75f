import { expect, test } from "bun:test";
import { editorWindows } from "./editor-windows.ts";

const block = (id: string, type: string, text: string, parentId = "", pos = id) => ({
  id,
  type,
  text,
  nav: { parentId, pos },
});

test("[EDIT-7] what a block says in its continuations is one text, in which a word may go on", () => {
  const windows = editorWindows([
    block("b", "paragraph", "the begin"),
    block("y", "continuation", " and its e", "b", "a2"),
    block("x", "continuation", "ning ", "b", "a1"),
    block("z", "continuation", "nd", "b", "a3"),
    block("c", "paragraph", "after"),
    block("n", "paragraph", "nested", "b", "a0"),
  ]);
  expect(windows).toEqual([{ firstBlockId: "b", title: "", text: "the beginning  and its end\nnested\nafter" }]);
});

test("[EDIT-7] a continuation of nothing, or of itself, is found by itself", () => {
  const windows = editorWindows([
    block("a", "continuation", "lost", "nobody"),
    block("b", "continuation", "own", "b"),
    block("c", "continuation", "top"),
    block("d", "continuation", " of it", "c"),
  ]);
  expect(windows.map(({ text }) => text)).toEqual(["top of it\nlost\nown"]);
});
