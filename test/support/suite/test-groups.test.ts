import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import secondsByFile from "./long-files.json";
import { SUITE_LIMIT_MS } from "./run-suite.ts";
import { TEST_GROUPS } from "./test-groups.ts";

const ROOT = join(import.meta.dir, "../../..");

test("every test file of the project belongs to exactly one group", async () => {
  const files = await Array.fromAsync(new Bun.Glob("{src,cli,ui,test}/**/*.{test,spec}.*").scan({ cwd: ROOT }));
  const groupsOf = (file: string) =>
    TEST_GROUPS.filter((group) => group.patterns.some((pattern) => new Bun.Glob(pattern).match(file)));
  expect(files.length).toBeGreaterThan(0);
  expect(files.filter((file) => groupsOf(file).length !== 1)).toEqual([]);
});

test("files that begin first because they take long are there", () => {
  expect(Object.keys(secondsByFile).filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});

test("no process may take longer than the suite has", () => {
  for (const { processTimeoutMs } of TEST_GROUPS) expect(processTimeoutMs).toBeLessThan(SUITE_LIMIT_MS);
  expect(SUITE_LIMIT_MS).toBeLessThan(3_600_000);
});
