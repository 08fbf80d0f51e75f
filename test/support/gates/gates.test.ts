/** The linters' configuration, proved by planted faults: a gate that sees nothing would pass everything. */
import { afterAll, describe, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findLong } from "./lengths.ts";

const ROOT = join(import.meta.dir, "../../..");
const scratch = mkdtempSync(join(tmpdir(), "svc-gates-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const CLEAN = { "src/a.ts": `export const a = async (): Promise<number> => 1;\n` };

const PLANTED: [rule: string, files: Record<string, string>][] = [
  [
    "typescript(no-floating-promises)",
    { ...CLEAN, "src/b.ts": `import { a } from "./a.ts";\nexport function b(): void {\n  a();\n}\n` },
  ],
  [
    "typescript(no-misused-promises)",
    { ...CLEAN, "src/b.ts": `import { a } from "./a.ts";\nexport const b = (): number => (a() ? 1 : 2);\n` },
  ],
  ["typescript(no-explicit-any)", { "src/b.ts": `export const b = (value: any): unknown => value;\n` }],
  [
    "import(no-cycle)",
    {
      "src/a.ts": `import type { B } from "./b.ts";\nexport interface A {\n  b: B;\n}\n`,
      "src/b.ts": `import type { A } from "./a.ts";\nexport interface B {\n  a: A;\n}\n`,
    },
  ],
];

test("clean code passes oxlint", async () => {
  expect(await oxlint(CLEAN)).toMatchObject({ exitCode: 0 });
});

test.each(PLANTED)("oxlint refuses a planted fault: %s", async (rule, files) => {
  const { exitCode, output } = await oxlint(files);
  expect(output).toContain(rule);
  expect(exitCode).not.toBe(0);
});

describe("what is too long", () => {
  const body = (lines: number): string => "  a();\n".repeat(lines);
  const plant = async (files: Record<string, string>): Promise<string[]> => {
    const dir = mkdtempSync(join(scratch, "long-"));
    symlinkSync(join(ROOT, "node_modules"), join(dir, "node_modules"));
    copyFileSync(join(ROOT, "package.json"), join(dir, "package.json"));
    for (const [path, source] of Object.entries(files)) await Bun.write(join(dir, path), source);
    return findLong(dir, ["src"]);
  };

  test("is found in a test file by its whole length alone", async () => {
    const cases = `describe("b", () => {\n${body(398)}});\n`;
    const files = { "src/b.test.ts": cases, "src/c.test.ts": `a();\n${cases}` };
    expect(await plant(files)).toEqual(["src/c.test.ts has 401 lines, 400 at most"]);
  });

  test.each([
    ["a function of 81 lines", `export function run(): void {\n${body(79)}}\n`, "src/b.ts:1 has 81 lines, 80 at most"],
    ["an arrow of 81 lines", `export const run = () => {\n${body(79)}};\n`, "src/b.ts:1 has 81 lines, 80 at most"],
    [
      "a factory of 251 lines",
      `export function createB(): void {\n${body(249)}}\n`,
      "src/b.ts:1 has 251 lines, 250 at most",
    ],
    ["a file of 401 lines", "a();\n".repeat(401), "src/b.ts has 401 lines, 400 at most"],
  ])("is found: %s", async (_name, source, fault) => {
    expect(await plant({ "src/b.ts": source })).toEqual([fault]);
  });

  test("is found in a style sheet", async () => {
    const rules = (count: number): string => "a {}\n".repeat(count);
    const files = { "src/a.ts": "a();\n", "src/a.css": rules(400), "src/b/c.css": rules(401) };
    expect(await plant(files)).toEqual(["src/b/c.css has 401 lines, 400 at most"]);
  });

  test("what is just short enough passes, and so does a reason in the file's head", async () => {
    const files = {
      "src/a.ts": `export function run(): void {\n${body(78)}}\n`,
      "src/b.ts": `export function createB(): void {\n${body(248)}}\n`,
      "src/c.ts": "a();\n".repeat(400),
      "src/d.ts": `/** A table. Long because it is one table. */\n${"a();\n".repeat(400)}`,
    };
    expect(await plant(files)).toEqual([]);
  });

  test("is nowhere in the project", async () => {
    expect(await findLong(ROOT)).toEqual([]);
  });
});

async function oxlint(files: Record<string, string>): Promise<{ exitCode: number; output: string }> {
  const dir = mkdtempSync(join(scratch, "case-"));
  for (const name of [".oxlintrc.json", "tsconfig.json"]) copyFileSync(join(ROOT, name), join(dir, name));
  symlinkSync(join(ROOT, "node_modules"), join(dir, "node_modules"));
  for (const [path, source] of Object.entries(files)) await Bun.write(join(dir, path), source);
  const child = Bun.spawn([process.execPath, "run", "--bun", "--silent", "oxlint", "--type-aware", "src"], {
    cwd: dir,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { exitCode: await child.exited, output: stdout + stderr };
}
