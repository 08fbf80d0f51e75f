/**
 * `bun run check`: format, lint, types, layers, dead code and unit tests. One line a step, the output of those that
 * failed below it, exit code 0 only if every step passed.
 */
import { join } from "node:path";
import { findBreaches, readSources } from "../gates/layers.ts";
import { countsLine, runGroups } from "./test-group-run.ts";
import { UNIT_GROUP } from "./test-groups.ts";

const ROOT = join(import.meta.dir, "../../..");
const FOLDERS = ["src", "cli", "ui", "test", "build.ts"];

interface StepResult {
  passed: boolean;
  /** Shown if the step failed. */
  output: string;
  /** Shown in its line. */
  note?: string;
}

interface Step {
  name: string;
  run: () => Promise<StepResult>;
}

/** Run side by side: each is mostly waiting for files. */
const STATIC_STEPS: readonly Step[] = [
  { name: "format and lint (biome)", run: () => tool("biome", "ci", "--error-on-warnings", "--colors=off") },
  { name: "lint with types (oxlint)", run: () => tool("oxlint", "--type-aware", "--deny-warnings", ...FOLDERS) },
  { name: "types (tsc)", run: () => tool("tsc", "--noEmit", "--pretty", "false") },
  { name: "layers", run: checkLayers },
  { name: "dead code (knip)", run: () => tool("knip", "--no-progress", "--treat-config-hints-as-errors") },
];

const UNIT_STEP: Step = { name: "unit tests", run: runUnitTests };

if (import.meta.main) {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
  const results = await Promise.all(STATIC_STEPS.map(runStep));
  results.push(await runStep(UNIT_STEP));
  const failures = results.filter((passed) => !passed).length;
  console.log(failures === 0 ? "check passed" : `check failed: ${failures} of ${results.length} steps`);
  process.exitCode = failures === 0 ? 0 : 1;
}

async function runStep({ name, run }: Step): Promise<boolean> {
  const startedAt = performance.now();
  const { passed, output, note } = await run();
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`${passed ? "ok  " : "FAIL"}  ${name.padEnd(26)} ${seconds.padStart(6)} s${note ? `  ${note}` : ""}`);
  if (!passed) console.log(output.trimEnd().replaceAll(/^/gm, "      "));
  return passed;
}

/** Runs a package's command line under this Bun. */
async function tool(name: string, ...args: string[]): Promise<StepResult> {
  const child = Bun.spawn([process.execPath, "run", "--bun", "--silent", name, ...args], {
    cwd: ROOT,
    env: { ...process.env, NO_COLOR: "1" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [exitCode, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { passed: exitCode === 0, output: stdout + stderr };
}

async function checkLayers(): Promise<StepResult> {
  try {
    const breaches = findBreaches(await readSources(ROOT));
    return { passed: breaches.length === 0, output: breaches.join("\n") };
  } catch (error) {
    return { passed: false, output: error instanceof Error ? error.message : String(error) };
  }
}

async function runUnitTests(): Promise<StepResult> {
  let output = "";
  const [result] = await runGroups([UNIT_GROUP], {
    root: ROOT,
    processes: UNIT_GROUP.workers,
    refuseSkips: process.env["CI"] === "true",
    print: (text) => {
      output += text;
    },
  });
  const { failed, faults } = result!;
  return { passed: failed === 0, output: [output.trimEnd(), ...faults].join("\n"), note: countsLine(result!) };
}
