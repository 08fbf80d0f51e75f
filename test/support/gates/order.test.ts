import { expect, test } from "bun:test";
import { copyFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { scratchDir } from "../scratch.ts";
import { findUsedEarly } from "./order.ts";

const ROOT = join(import.meta.dir, "../../..");

test("nothing is used before it is made", async () => {
  expect(await findUsedEarly(ROOT, ["src", "cli", "ui"])).toEqual([]);
});

test("what is used in a closure above the line that makes it is found, whatever makes it", async () => {
  using scratch = scratchDir("svc-order");
  const dir = scratch.path;
  symlinkSync(join(ROOT, "node_modules"), join(dir, "node_modules"));
  copyFileSync(join(ROOT, "package.json"), join(dir, "package.json"));
  const planted = [
    "import { createA, createB, type A } from './a.ts';",
    "export async function wire(): Promise<void> {",
    "  const a = createA({ told: () => b.hear() });",
    "  const b = await createB(a);",
    "  const c = createA({ told: () => d });",
    "  const d = new Map([[b, c]]);",
    "  const e = () => f;",
    "  let f: A;",
    "  f = c;",
    "  let g!: A;",
    "  const helper = () => later();",
    "  const later = () => [e, g, f];",
    "  helper();",
    "}",
  ].join("\n");
  const whole = "const a = () => B;\nconst B = 1;\nexport const wire = () => a();\n";
  await Bun.write(join(dir, "src/a.ts"), "export interface A {}\n");
  await Bun.write(join(dir, "src/planted.ts"), planted);
  await Bun.write(join(dir, "src/whole.ts"), whole);
  expect(await findUsedEarly(dir, ["src"])).toEqual([
    "src/planted.ts:10 declares a variable as if it were set",
    "src/planted.ts:3 uses b before it is made",
    "src/planted.ts:5 uses d before it is made",
    "src/planted.ts:7 uses f before it is made",
  ]);
});
