// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what is planted is source.
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findProse } from "./prose.ts";

const ROOT = join(import.meta.dir, "../../..");
const scratch = mkdtempSync(join(tmpdir(), "svc-prose-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

async function found(files: Record<string, string>): Promise<string[]> {
  const root = mkdtempSync(join(scratch, "p-"));
  for (const [path, body] of Object.entries(files))
    await Bun.write(join(root, path), `import { svcError } from "../protocol/errors.ts";\n${body}\n`);
  return findProse(root);
}

describe("a refusal is worded at the edge", () => {
  test.each([
    ["in the call", "throw svcError(`a.b`, {}, `The ${what} is gone`);"],
    ["in a part of the details", 'throw refusedAs("a.b", { reason: "it is gone" }, why);'],
    ["in a refusal", 'return refusal("a.b", { what: "object id" });'],
    ["in a variable", 'const reason = "it is gone";'],
    ["in what a helper is given", 'throw refuse("name", "choose another");'],
    ["inside a template", "return refusal(`a.${why ? `it is gone` : ``}`);"],
    ["behind a regular expression", 'const a = /"/; const b = "it is gone";'],
  ])("a planted wording is found: %s", async (_where, body) => {
    expect(await found({ "src/domain/a.ts": body })).toEqual([
      expect.stringContaining("src/domain/a.ts:2 words a refusal"),
    ]);
  });

  test.each([
    ["a code and facts", 'throw refusedAs("a.b", { path }, refusal("a.c", { path }));'],
    ["a log line", 'log.warn("it is gone", { err: error });'],
    ["an error of the program", 'throw new StoredFileError("damaged", "it is gone");'],
    ["SQL", 'db.query("SELECT a FROM b");'],
    ["comments", '// it is "gone for ever"\n/* so is "this one" */'],
  ])("%s may stand", async (_what, body) => {
    expect(await found({ "src/domain/a.ts": body })).toEqual([]);
  });

  test("a room that talks to others is looked into where it makes refusals", async () => {
    const files = { "src/sync/a.ts": 'link.close("nothing is shared");\nreject(svcError("a.b", {}, "it is gone"));' };
    expect(await found(files)).toEqual([expect.stringContaining("src/sync/a.ts:3")]);
  });

  test("the project words none below the edge", async () => {
    expect(await findProse(ROOT)).toEqual([]);
  });
});
