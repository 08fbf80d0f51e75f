import { expect, test } from "bun:test";
import { join } from "node:path";
import { TEST_GROUPS } from "./test-groups.ts";

const ROOT = join(import.meta.dir, "../..");

test("[suite] every test file of the project belongs to exactly one group", async () => {
  const files = await Array.fromAsync(new Bun.Glob("{src,cli,ui,test}/**/*.{test,spec}.*").scan({ cwd: ROOT }));
  const groupsOf = (file: string) =>
    TEST_GROUPS.filter((group) => group.patterns.some((pattern) => new Bun.Glob(pattern).match(file)));
  expect(files.length).toBeGreaterThan(0);
  expect(files.filter((file) => groupsOf(file).length !== 1)).toEqual([]);
});

test("[suite] files that begin first are there", async () => {
  for (const group of TEST_GROUPS) {
    const found = await Promise.all(
      group.patterns.map((pattern) => Array.fromAsync(new Bun.Glob(pattern).scan({ cwd: ROOT }))),
    );
    expect(group.longest.filter((file) => !found.flat().includes(file))).toEqual([]);
  }
});

test("[suite] the limits of all groups fit into an hour where each runs as one process", () => {
  const sum = TEST_GROUPS.reduce((total, group) => total + group.processTimeoutMs, 0);
  expect(sum).toBeLessThan(3_600_000);
});
