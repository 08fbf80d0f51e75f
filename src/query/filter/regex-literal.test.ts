import { expect, test } from "bun:test";
import { RE2JS } from "re2js";
import { createRandom } from "../../../test/support/random-json.ts";
import { foldText, literalsOf } from "./regex-literal.ts";

const literals = (source: string, flags = 0) => literalsOf(RE2JS.compile(source, flags));

test("a text at the anchored beginning is a prefix, the longest plain text is required", () => {
  expect(literals("^user12$")).toEqual({ prefix: "user12", required: "user12" });
  expect(literals("^ab.*(x|y)")).toEqual({ prefix: undefined, required: undefined });
  expect(literals("^ab.*invoice")).toEqual({ prefix: "ab", required: "invoice" });
  expect(literals("needle")).toEqual({ prefix: undefined, required: "needle" });
  expect(literals("^ab", RE2JS.MULTILINE)).toEqual({ prefix: undefined, required: "ab" });
  expect(literals("^Ab", RE2JS.CASE_INSENSITIVE)).toEqual({ prefix: undefined, required: "ab" });
  expect(literals("^a\\.b\\-c")).toEqual({ prefix: "a.b-c", required: "a.b-c" });
});

test("what a quantifier may take away is not required", () => {
  expect(literals("^abc*")).toEqual({ prefix: "ab", required: "ab" });
  expect(literals("^abc{0}de")).toEqual({ prefix: "ab", required: "ab" });
  expect(literals("abc+d")).toEqual({ prefix: undefined, required: "abc" });
  expect(literals("x?")).toEqual({ prefix: undefined, required: undefined });
  for (const source of ["(abc)?", "[abc]+", "\\Qa|b\\E", "\\x41", "(?i)abc", "", "^", ".*"])
    expect(literals(source)).toEqual({ prefix: undefined, required: undefined });
});

test("every text that a regex matches has what its literals ask for", () => {
  const random = createRandom(Number(process.env["FUZZ_SEED"] ?? Date.now() % 1_000_000));
  const parts = [
    "a",
    "b",
    "K",
    "s",
    "ab",
    ".",
    "\\.",
    "*",
    "+",
    "?",
    "{0,1}",
    "{2}",
    "^",
    "$",
    "[ab]",
    "(a)",
    "\\d",
    "é",
    "\\b",
    "-",
  ];
  const letters = ["a", "b", "k", "K", "\u212a", "s", "S", "\u017f", ".", "1", "é", "É", "\n", "-", "İ", ""];
  const some = (from: readonly string[], most: number) =>
    Array.from({ length: 1 + random.below(most) }, () => random.pick(from)).join("");
  let [matched, requiredCount] = [0, 0];
  for (let round = 0; round < 30_000; round++) {
    const source = some(parts, 6);
    let regex: RE2JS;
    try {
      regex = RE2JS.compile(source, random.below(8));
    } catch {
      continue; // not every sequence of parts is a regex
    }
    const { prefix, required } = literalsOf(regex);
    const text = some(letters, 8);
    if (!regex.test(text)) continue;
    matched++;
    if (required !== undefined) requiredCount++;
    const context = { source, flags: regex.flags(), text };
    expect({ ...context, begins: text.startsWith(prefix ?? "") }).toEqual({ ...context, begins: true });
    expect({ ...context, has: foldText(text).includes(required ?? "") }).toEqual({ ...context, has: true });
  }
  expect(matched).toBeGreaterThan(1_000);
  expect(requiredCount).toBeGreaterThan(300);
});
