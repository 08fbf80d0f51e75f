/** The linters' configuration, proved by planted faults: a gate that sees nothing would pass everything. */
import { afterAll, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
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

test("[gates] clean code passes oxlint", async () => {
  expect(await oxlint(CLEAN)).toMatchObject({ exitCode: 0 });
});

test.each(PLANTED)("[gates] oxlint refuses a planted fault: %s", async (rule, files) => {
  const { exitCode, output } = await oxlint(files);
  expect(output).toContain(rule);
  expect(exitCode).not.toBe(0);
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
