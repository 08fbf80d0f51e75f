/** The suite's honesty, proved on planted test files: whatever a test does to its process must end up in the counts. */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type GroupResult, type GroupRunOptions, runGroups } from "./test-group-run.ts";
import type { TestGroup } from "./test-groups.ts";

const scratch = mkdtempSync(join(tmpdir(), "svc-run-suite-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const PASSING = `import { test } from "bun:test"; test("one", () => {}); test("two", () => {});`;

const PLANTED: [rule: string, source: string, expected: { passed: number; failed: number; skipped?: number }][] = [
  ["passing tests are counted", PASSING, { passed: 2, failed: 0 }],
  [
    "a failing test fails",
    `import { test } from "bun:test"; test("good", () => {}); test("bad", () => { throw new Error("no"); });`,
    { passed: 1, failed: 1 },
  ],
  [
    "a file that throws while loading fails",
    `import { test } from "bun:test"; test("never", () => {}); throw new Error("at load");`,
    { passed: 0, failed: 1 },
  ],
  ["a file with a syntax error fails", `import { test from "bun:test";`, { passed: 0, failed: 1 }],
  [
    "process.exit(0) in a test fails",
    `import { test } from "bun:test"; test("good", () => {}); test("leaves", () => process.exit(0));`,
    { passed: 0, failed: 1 },
  ],
  [
    "process.exit(0) after the tests fails",
    `import { afterAll, test } from "bun:test"; test("good", () => {}); afterAll(() => process.exit(0));`,
    { passed: 0, failed: 1 },
  ],
  [
    "a process that kills itself fails",
    `import { test } from "bun:test"; test("dies", () => process.kill(process.pid, "SIGKILL"));`,
    { passed: 0, failed: 1 },
  ],
  [
    "an error between tests fails",
    `import { test } from "bun:test";
     test("sows", () => { setTimeout(() => { throw new Error("late"); }, 5); });
     test("waits", async () => { await Bun.sleep(100); });`,
    { passed: 1, failed: 1 },
  ],
  ["a file without tests fails", "export {};", { passed: 0, failed: 1 }],
  [
    "a forged closing line changes nothing",
    `import { test } from "bun:test";
     test("forges", () => { console.error(" 9 pass\\n 0 fail\\nRan 9 tests across 1 file. [1ms]"); process.exit(0); });`,
    { passed: 0, failed: 1 },
  ],
  [
    "a skip without a reason fails",
    `import { test } from "bun:test"; test("good", () => {}); test.skip("hidden", () => {});`,
    { passed: 1, failed: 1, skipped: 1 },
  ],
  [
    "a todo without a reason fails",
    `import { test } from "bun:test"; test("good", () => {}); test.todo("later");`,
    { passed: 1, failed: 1, skipped: 1 },
  ],
  [
    "test.only fails",
    `import { test } from "bun:test"; test("hidden", () => {}); test.only("seen", () => {});`,
    { passed: 0, failed: 1 },
  ],
  [
    "skipUnless skips with its reason",
    `import { test } from "bun:test"; import { skipUnless } from "${import.meta.dir}/../skip.ts";
     test("good", () => {}); skipUnless(false, "no moon tonight")("howls", () => {});`,
    { passed: 1, failed: 0, skipped: 1 },
  ],
  [
    "a process left behind fails",
    `import { test } from "bun:test";
     test("leaks", () => { Bun.spawn(["sleep", "30"], { stdin: "ignore", stdout: "ignore", stderr: "ignore" }).unref(); });`,
    { passed: 1, failed: 1 },
  ],
];

describe("the counts are honest", () => {
  test.each(PLANTED)("%s", async (_rule, source, { passed, failed, skipped = 0 }) => {
    const result = await runPlanted({ "src/planted.test.ts": source });
    expect(result).toMatchObject({ passed, failed, skipped });
    if (failed > 0) expect(result.faults.length + result.failures.length).toBeGreaterThan(0);
  });

  test("a crashing file hides no other file of its group", async () => {
    const result = await runPlanted(
      { "src/dies.test.ts": `process.exit(0);`, "src/good.test.ts": PASSING },
      { workers: 2 },
    );
    expect(result.passed).toBe(2);
    expect(result.failed).toBeGreaterThan(0);
  });

  test("files run in processes of their own side by side, and each is judged alone", async () => {
    // Each waits for the other: they pass only if both run at the same time.
    const waits = (
      own: string,
      other: string,
    ) => `import { test } from "bun:test"; import { existsSync } from "node:fs";
      test("meets", async () => { await Bun.write("${own}", ""); while (!existsSync("${other}")) await Bun.sleep(5); });`;
    const dies = `import { test } from "bun:test"; test("leaves", () => process.exit(0));`;
    const result = await runPlanted(
      {
        "src/a.test.ts": waits("a", "b"),
        "src/b.test.ts": waits("b", "a"),
        "src/c.test.ts": dies,
        "src/d.test.ts": PASSING,
      },
      { processes: 2 },
    );
    expect(result).toMatchObject({ passed: 4, failed: 1 });
  });

  test("files that take long begin first, the others follow by name", async () => {
    const notes = `import { test } from "bun:test"; import { appendFileSync } from "node:fs"; import { basename } from "node:path";
      test("is noted", () => appendFileSync("order", basename(import.meta.path)[0]));`;
    const root = await plant({ "src/a.test.ts": notes, "src/b.test.ts": notes, "src/c.test.ts": notes });
    const secondsByFile = { "src/b.test.ts": 20, "src/c.test.ts": 30 };
    expect(await run([GROUP], root, { secondsByFile })).toMatchObject([{ passed: 3, failed: 0 }]);
    expect(await Bun.file(join(root, "order")).text()).toBe("cba");
  });

  test("more processes run while there is time for them, and no more than may", async () => {
    const waits = (own: string, others: string[]) =>
      `import { test } from "bun:test"; import { existsSync } from "node:fs";
      test("meets", async () => {
        await Bun.write("${own}", "");
        while (!${JSON.stringify(others)}.every((other) => existsSync(other))) await Bun.sleep(5);
      });`;
    const root = await plant({
      "src/a.test.ts": waits("a", ["b", "c"]),
      "src/b.test.ts": waits("b", ["c"]),
      "src/c.test.ts": waits("c", ["b"]),
      "src/d.test.ts": `import { test } from "bun:test"; import { existsSync } from "node:fs";
        test("is after another", () => { if (!existsSync("a") || !existsSync("b") || !existsSync("c")) throw new Error("early"); });`,
    });
    let asked = 0;
    // The first time there is none.
    const hasTime = () => asked++ > 0;
    const result = await run([GROUP], root, { more: { processes: 3, hasTime } });
    expect(result).toMatchObject([{ passed: 4, failed: 0 }]);
    expect(asked).toBeGreaterThanOrEqual(3);
  });

  test("files of several groups run side by side, those of a group that is to be apart after them, two at a time", async () => {
    const meets = (own: string, other: string) =>
      `import { test } from "bun:test"; import { appendFileSync, existsSync } from "node:fs";
      test("is noted", async () => {
        appendFileSync("order", "(");
        await Bun.write("${own}", "");
        while (!existsSync("${other}")) await Bun.sleep(5);
        for (let turn = 0; turn < 20; turn++) await Bun.sleep(1);
        appendFileSync("order", ")");
      });`;
    const root = await plant({
      "apart/a.test.ts": meets("a", "b"),
      "apart/b.test.ts": meets("b", "a"),
      "one/c.test.ts": meets("c", "d"),
      "other/d.test.ts": meets("d", "c"),
    });
    const group = (name: string, apart: boolean) => ({ ...GROUP, name, apart, patterns: [`${name}/*.test.ts`] });
    const groups = [group("apart", true), group("one", false), group("other", false)];
    expect(await run(groups, root, { processes: 3 })).toMatchObject([
      { group: "apart", passed: 2, failed: 0 },
      { group: "one", passed: 1, failed: 0 },
      { group: "other", passed: 1, failed: 0 },
    ]);
    expect(await Bun.file(join(root, "order")).text()).toBe("(())(())");
  });

  test("what fails beside others is run once more, alone, where its group says so, and is named if it passes then", async () => {
    const FAILS_FIRST = `import { test } from "bun:test"; import { existsSync } from "node:fs";
      test("good", () => {});
      test("is late", async () => { if (!existsSync("tried")) { await Bun.write("tried", ""); throw new Error("late"); } });`;
    const files = { "src/late.test.ts": FAILS_FIRST, "src/good.test.ts": PASSING };
    const unsteady = [{ file: "src/late.test.ts", title: "is late" }];
    expect(await runPlanted(files, { secondRun: true })).toMatchObject({
      passed: 4,
      failed: 0,
      failures: [],
      unsteady,
    });
    expect(await runPlanted(files)).toMatchObject({ passed: 3, failed: 1, unsteady: [] });
    const leaves = { "src/leaves.test.ts": FAILS_FIRST.replace('throw new Error("late")', "process.exit(0)") };
    const left = await runPlanted(leaves, { secondRun: true });
    expect(left).toMatchObject({ passed: 2, failed: 0, faults: [] });
    expect(left.unsteady).toHaveLength(1);
  });

  test("what fails twice fails, and of many that fail none is run again", async () => {
    const bad = `import { test } from "bun:test"; test("bad", () => { throw new Error("no"); });`;
    expect(await runPlanted({ "src/bad.test.ts": bad }, { secondRun: true })).toMatchObject({
      failed: 1,
      unsteady: [],
    });
    const once = (
      name: string,
    ) => `import { test } from "bun:test"; import { appendFileSync, readFileSync } from "node:fs";
      test("bad", () => { appendFileSync("${name}", "x"); if (readFileSync("${name}", "utf8") === "x") throw new Error("no"); });`;
    const names = ["a", "b", "c", "d"];
    const files = Object.fromEntries(names.map((name) => [`src/${name}.test.ts`, once(name)]));
    expect(await runPlanted(files, { secondRun: true })).toMatchObject({ passed: 0, failed: 4, unsteady: [] });
  });

  test("what a file's process and those it started computed is counted", async () => {
    const burns = `const until = performance.now() + 100; while (performance.now() < until);
      await Bun.write(process.argv[2], String(process.cpuUsage().user / 1e6));`;
    const source = `import { test } from "bun:test";
      test("burns", async () => {
        await Bun.spawn([process.execPath, "burns.ts", "burnt"]).exited;
        await Bun.write("own", String(process.cpuUsage().user / 1e6));
      });`;
    const root = await plant({ "src/planted.test.ts": source, "burns.ts": burns });
    const [result] = await run([GROUP], root);
    const reported = await Promise.all(
      ["burnt", "own"].map(async (name) => Number(await Bun.file(join(root, name)).text())),
    );
    expect(result!.processorSeconds).toBeGreaterThanOrEqual(reported[0]! + reported[1]!);
    expect(result!.times).toMatchObject([{ file: "src/planted.test.ts", processorSeconds: result!.processorSeconds }]);
  });

  test("what tests leave in the directory for passing files is removed, even where they end in the middle", async () => {
    const leaves = `import { tmpdir } from "node:os"; import { join } from "node:path";
      const left = join(tmpdir(), "left"); await Bun.write(left, ""); await Bun.write("where", left); process.exit(0);`;
    const root = await plant({ "src/planted.test.ts": leaves });
    await run([GROUP], root);
    const left = await Bun.file(join(root, "where")).text();
    expect(left).toEndWith("/left");
    expect(existsSync(left)).toBe(false);
  });

  test("a skip carries its reason into the result", async () => {
    const source = `import { skipUnless } from "${import.meta.dir}/../skip.ts";
      skipUnless(false, "no moon tonight")("howls", () => {});`;
    const result = await runPlanted({ "src/planted.test.ts": source });
    expect(result.skips).toEqual([
      { file: "src/planted.test.ts", title: "howls [skipped: no moon tonight]", reason: "no moon tonight" },
    ]);
  });

  test("a skipped group gives its reason to each of its tests", async () => {
    const source = `import { test } from "bun:test"; import { skipGroupUnless } from "${import.meta.dir}/../skip.ts";
      skipGroupUnless(false, "no moon tonight")("wolves", () => { test("howl", () => {}); test("run", () => {}); });`;
    const result = await runPlanted({ "src/planted.test.ts": source });
    expect(result).toMatchObject({ failed: 0, skipped: 2 });
    expect(result.skips.map((each) => each.reason)).toEqual(["no moon tonight", "no moon tonight"]);
    expect(await runPlanted({ "src/planted.test.ts": source }, {}, true)).toMatchObject({ failed: 1, skipped: 0 });
  });

  test("where skips are refused a missing component fails", async () => {
    const source = `import { skipUnless } from "${import.meta.dir}/../skip.ts";
      skipUnless(false, "no moon tonight")("howls", () => {});`;
    const result = await runPlanted({ "src/planted.test.ts": source }, {}, true);
    expect(result).toMatchObject({ passed: 0, failed: 1, skipped: 0 });
  });

  test("a group that hangs is killed and fails", async () => {
    const source = `import { test } from "bun:test"; test("hangs", () => { for (;;); });`;
    const result = await runPlanted({ "src/planted.test.ts": source }, { processTimeoutMs: 500 });
    expect(result.failed).toBeGreaterThan(0);
    expect(result.faults).toContain("killed after 0.5 s");
  });

  test("what is past the suite's deadline is killed and fails", async () => {
    // One that passes at once may be over before it is killed.
    const source = `import { test } from "bun:test"; test("hangs", () => { for (;;); });`;
    const root = await plant({ "src/planted.test.ts": source });
    const options = { root, refuseSkips: false, processes: 1, deadlineMs: Date.now(), print: () => {} };
    const [result] = await runGroups([GROUP], options);
    expect(result).toMatchObject({ passed: 0 });
    expect(result!.failed).toBeGreaterThan(0);
  });

  test("a group without files fails", async () => {
    expect(await runPlanted({})).toMatchObject({ passed: 0, failed: 1 });
  });
});

describe("the closing line", () => {
  test("is the last line and agrees with the exit code", async () => {
    const good = await runSuiteScript({ "src/good.test.ts": PASSING });
    expect(good).toEqual({ lastLine: "2 passed, 0 failed", exitCode: 0 });
    const bad = await runSuiteScript({ "src/good.test.ts": PASSING, "src/dies.test.ts": "process.exit(0);" });
    expect(bad.lastLine).toMatch(/^2 passed, [1-9]\d* failed$/);
    expect(bad.exitCode).toBe(1);
  });

  test("counts a build that fails, and no stale executable is tested", async () => {
    const files = { "src/good.test.ts": PASSING, "dist/svc": "old", "build.ts": "process.exit(3);" };
    const result = await runSuiteScript(files, { needsExecutable: true });
    expect(result).toEqual({ lastLine: "0 passed, 1 failed", exitCode: 1 });
  });
});

const GROUP: TestGroup = {
  name: "planted",
  patterns: ["src/**/*.test.ts"],
  needsExecutable: false,
  workers: 1,
  apart: false,
  secondRun: false,
  data: "memory",
  testTimeoutMs: 5000,
  processTimeoutMs: 20_000,
};

async function plant(files: Record<string, string>): Promise<string> {
  const root = mkdtempSync(join(scratch, "root-"));
  for (const [path, source] of Object.entries(files)) await Bun.write(join(root, path), source);
  return root;
}

const run = (groups: TestGroup[], root: string, options: Partial<GroupRunOptions> = {}): Promise<GroupResult[]> =>
  runGroups(groups, { root, refuseSkips: false, processes: 1, print: () => {}, ...options });

async function runPlanted(
  files: Record<string, string>,
  { processes = 1, ...change }: Partial<TestGroup> & { processes?: number } = {},
  refuseSkips = false,
): Promise<GroupResult> {
  const [result] = await run([{ ...GROUP, ...change }], await plant(files), { processes, refuseSkips });
  return result!;
}

async function runSuiteScript(files: Record<string, string>, change: Partial<TestGroup> = {}) {
  const root = await plant(files);
  const script = join(root, "script.ts");
  await Bun.write(
    script,
    `import { runSuite } from "${join(dirname(import.meta.path), "run-suite.ts")}";
     process.exitCode = await runSuite(${JSON.stringify(root)}, [${JSON.stringify({ ...GROUP, ...change })}], []);`,
  );
  const child = Bun.spawn([process.execPath, script], { stdout: "pipe", stderr: "ignore" });
  const lines = (await new Response(child.stdout).text()).trimEnd().split("\n");
  return { lastLine: lines.at(-1), exitCode: await child.exited };
}
