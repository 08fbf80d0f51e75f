import { expect, test } from "bun:test";
import { join } from "node:path";
import { REPAIR_CODES } from "./repair-words.ts";

const ROOT = join(import.meta.dir, "../..");

test("every code of a repair is said somewhere", async () => {
  let said = "";
  for await (const path of new Bun.Glob("src/{change,space,engine}/**/*.ts").scan({ cwd: ROOT }))
    if (!path.endsWith(".test.ts")) said += await Bun.file(join(ROOT, path)).text();
  expect(REPAIR_CODES.filter((code) => !said.includes(`"${code}"`))).toEqual([]);
});
