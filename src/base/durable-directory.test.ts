import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { scratchDir } from "../../test/support/scratch.ts";
import { makeDurableDirectory } from "./durable-directory.ts";

test("[STORE-7] a directory is made with those above it, for its owner alone, and once", () => {
  using dir = scratchDir("svc-directory");
  const path = join(dir.path, "a", "b", "c");
  expect(makeDurableDirectory(path)).toBe(true);
  expect(makeDurableDirectory(path)).toBe(false);
  for (const made of ["a", "a/b", "a/b/c"]) expect(statSync(join(dir.path, made)).mode & 0o777).toBe(0o700);
});
