import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { findWaits, readTests } from "./waits.ts";

const waits = (line: string, path = "src/a.test.ts") => findWaits(new Map([[path, `\n  ${line}\n`]]));

describe("a planted wait is found", () => {
  test.each([
    "await Bun.sleep(100); // by now",
    "await Bun.sleep(QUIET_MS);",
    "for (const until = now + 25_000; now < until; await Bun.sleep(1000))",
    "while (Date.now() < deadline) await Bun.sleep(5);",
    "while (performance.now() < deadline && !done) await Bun.sleep(5);",
    "await new Promise((resolve) => setTimeout(resolve, 20));",
    "await pace(500);\n  expect(sent).toEqual([]);",
    'import { setTimeout as after } from "node:timers/promises";',
  ])("%s", (line) => {
    expect(waits(line)).toEqual([`src/a.test.ts:2: ${line.split("\n")[0]}`]);
  });
});

test.each([
  "await Bun.sleep(0);",
  "while (sinks.length === 0) await Bun.sleep(5);",
  "await pace(rng.int(5, 50));",
  'await until(() => sent.length === 1, "the message");',
])("%s is none", (line) => {
  expect(waits(line)).toEqual([]);
});

test("what helps tests may wait, and does not look right behind it", () => {
  expect(waits("await Bun.sleep(100);", "test/support/a.ts")).toEqual([]);
  for (const wait of ["await Bun.sleep(100);", "await pace(500);"])
    expect(waits(`${wait}\n  expect(sent).toEqual([]);`, "test/support/a.ts")).toEqual([
      `test/support/a.ts:2: ${wait}`,
    ]);
});

test("no test of the project, and nothing that helps them, sleeps and then looks", async () => {
  const tests = await readTests(join(import.meta.dir, "../../.."));
  expect([tests.has("test/support/gates/layers.test.ts"), tests.has("test/support/pace.ts")]).toEqual([true, true]);
  expect(findWaits(tests)).toEqual([]);
});
