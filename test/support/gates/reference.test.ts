import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { checkList, checkReference, readCiting, readRules } from "./reference.ts";

const ROOT = join(import.meta.dir, "../../..");
const RULES = new Map([["docs/reference/x.md", "- **QQ-1** One.\n- **QQ-2** Two.\n"]]);
const check = (source: string, path = "src/a.test.ts") => checkReference(new Map([[path, source]]), RULES);

describe("a planted fault is found", () => {
  test("a citation of a rule that there is not", () => {
    expect(check("// QQ-3").unknown).toEqual(["src/a.test.ts: QQ-3"]);
  });
  test("a rule that no test cites, whatever the sources do", () => {
    expect(check("// QQ-1").unproved).toEqual(["QQ-2"]);
    expect(check("// QQ-1 QQ-2", "src/a.ts").unproved).toEqual(["QQ-1", "QQ-2"]);
  });
  test("a citation of a document that is not here", () => {
    const planted = ["ga", "ps § 4"].join("");
    expect(check(`// ${planted}`).foreign).toEqual([`src/a.test.ts: ${planted}`]);
    expect(check("// §17 languages").foreign).toEqual(["src/a.test.ts: §17"]);
    expect(check("// RFC 8032 § 5.1").foreign).toEqual([]);
  });
  test("a title with a label that is no rule's id", () => {
    const titled = (title: string) => check(`rule(\n  "${title}",\n  run,\n);`).labels;
    expect(titled("[edge] what is odd")).toEqual(["src/a.test.ts: [edge]"]);
    expect(titled("[QQ-1] [space/query] what is odd")).toEqual(["src/a.test.ts: [space/query]"]);
    expect(titled("[qq-1] what is odd")).toEqual(["src/a.test.ts: [qq-1]"]);
    expect(check('test.each(CASES)("[edge] %s", run)').labels).toEqual(["src/a.test.ts: [edge]"]);
    expect([titled("[QQ-1] [QQ-2] what is"), titled("what is, as [1, 2]")]).toEqual([[], []]);
    expect(check('{ title: "[edge] what is odd" }').labels).toEqual(["src/a.test.ts: [edge]"]);
    expect(check("rule(`[edge] what is`, run)", "test/support/a.ts").labels).toEqual(["test/support/a.ts: [edge]"]);
    expect(check('rule("[edge] what is", run)', "src/a.ts").labels).toEqual([]);
  });
  test("a range in the list that leaves a rule out", () => {
    expect(checkList("- [X](x.md): QQ-1 to QQ-2\n", RULES)).toEqual([]);
    expect(checkList("- [X](x.md): QQ-1 to QQ-1\n", RULES)).toEqual(["x.md: QQ-1 to QQ-2"]);
  });
});

test("every rule that is cited stands in docs/reference, and every rule there is cited by a test; labels are ids", async () => {
  const faults = checkReference(await readCiting(ROOT), await readRules(ROOT));
  expect(faults).toEqual({ unknown: [], unproved: [], foreign: [], labels: [] });
});

test("the list of the rules says which there are", async () => {
  const list = await Bun.file(join(ROOT, "docs/reference/README.md")).text();
  expect(checkList(list, await readRules(ROOT))).toEqual([]);
});

describe("the files that documents name", () => {
  const named = (text: string): string[] =>
    [...text.matchAll(/`([A-Za-z0-9_-]+(?:\/[A-Za-z0-9_.-]+)+\.tsx?)`/g)].map(([, path]) => path!);
  /** As a document names a file: from the project's root on, or from `src/` on. */
  const isThere = async (path: string): Promise<boolean> =>
    (await Promise.all([path, `src/${path}`].map((one) => Bun.file(join(ROOT, one)).exists()))).includes(true);

  test("a name is read from the text, and that it leads nowhere is found", async () => {
    expect(named("see `base/log.ts` and `src/x/y.tsx`, not `a.ts`")).toEqual(["base/log.ts", "src/x/y.tsx"]);
    expect([
      await isThere("base/log.ts"),
      await isThere("test/support/gates/reference.ts"),
      await isThere("base/no.ts"),
    ]).toEqual([true, true, false]);
  });

  test("are there", async () => {
    const missing: string[] = [];
    for await (const file of new Bun.Glob("{docs/**/*.md,*.md}").scan(ROOT))
      for (const path of named(await Bun.file(join(ROOT, file)).text()))
        if (!path.includes("-x.") && !(await isThere(path))) missing.push(`${file}: ${path}`);
    expect(missing).toEqual([]);
  });
});
