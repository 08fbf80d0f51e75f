/**
 * The whole suite: builds dist/svc, runs the groups of tests in processes side by side, and ends with the one line
 * `N passed, N failed[, N skipped]`. Exit code 0 only if nothing failed.
 */
import { rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import secondsByFile from "./long-files.json";
import { createSpareTime, processorUse, usedShare } from "./spare-time.ts";
import { countsLine, failedGroup, type GroupResult, runGroups, sumVerdicts } from "./test-group-run.ts";
import { TEST_GROUPS, type TestGroup } from "./test-groups.ts";

/** The suite has an hour; what it cannot finish by then it has to say itself. */
export const SUITE_LIMIT_MS = 57 * 60_000;

const SLOWEST_SHOWN = 16;
/** A file that takes longer than this and begins late has the others wait for it; a busy machine doubles what they take. */
const LATE_SECONDS = 24;

/** Half of what tests do is waiting. Memory bounds how many run at a time on a machine of many processors. */
const PROCESSES = Math.min(2 * availableParallelism(), 8);
/** So many while all of them wait so much that processors have time left. */
const MOST_PROCESSES = Math.min(4 * availableParallelism(), 12);

if (import.meta.main) {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
  process.exitCode = await runSuite(join(import.meta.dir, "../../.."), TEST_GROUPS, process.argv.slice(2));
}

/** Runs `groups` (only those in `names`, if any are given) in the project at `root`; returns the exit code. */
export async function runSuite(root: string, groups: readonly TestGroup[], names: readonly string[]): Promise<number> {
  const unknown = names.find((name) => !groups.some((group) => group.name === name));
  if (unknown !== undefined) {
    console.error(`There is no group ${unknown}; there are ${groups.map((group) => group.name).join(", ")}.`);
    return 1;
  }
  const chosen = groups.filter((group) => names.length === 0 || names.includes(group.name));
  const deadlineMs = Date.now() + SUITE_LIMIT_MS;
  const buildFault = chosen.some((group) => group.needsExecutable) ? await build(root) : undefined;
  const isRunnable = (group: TestGroup) => !group.needsExecutable || buildFault === undefined;
  const startedAt = performance.now();
  const useAtStart = processorUse();
  console.log(`\n== tests: ${PROCESSES} processes at a time, up to ${MOST_PROCESSES} while processors have time left`);
  const ran = await runGroups(chosen.filter(isRunnable), {
    root,
    deadlineMs,
    processes: PROCESSES,
    more: { processes: MOST_PROCESSES, hasTime: createSpareTime() },
    secondsByFile,
    refuseSkips: process.env["CI"] === "true",
    print: (text) => process.stdout.write(text),
  });
  const refused = chosen.filter((group) => !isRunnable(group));
  const results = [...ran, ...refused.map((group) => failedGroup(group, `not run: ${buildFault}`))];
  printSummary(results, (performance.now() - startedAt) / 1000, usedShare(useAtStart, processorUse()));
  const times = results.flatMap((result) => result.times).sort((a, b) => b.seconds - a.seconds);
  await Bun.write(join(root, ".test-report/times.json"), JSON.stringify(times, null, 1));
  const total = sumVerdicts(results);
  console.log(`\n${countsLine(total)}`);
  return total.failed === 0 ? 0 : 1;
}

/** Returns why there is no fresh dist/svc. An old one is deleted first: no test may run against it. */
async function build(root: string): Promise<string | undefined> {
  const startedAt = performance.now();
  console.log("== build");
  await rm(join(root, "dist/svc"), { force: true });
  const child = Bun.spawn([process.execPath, "build.ts"], { cwd: root, stdout: "inherit", stderr: "inherit" });
  const exitCode = await child.exited;
  if (exitCode !== 0) return `dist/svc could not be built (exit code ${exitCode})`;
  console.log(`== build: done in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  return undefined;
}

function printSummary(results: readonly GroupResult[], tookSeconds: number, usedShare: number): void {
  const processors = (seconds: number | undefined): string =>
    seconds === undefined ? "" : `${seconds.toFixed(1).padStart(7)} s of a processor`;
  console.log("\n== summary");
  for (const result of results)
    console.log(`${result.group.padEnd(10)} ${countsLine(result).padEnd(44)} ${processors(result.processorSeconds)}`);
  const used = `${Math.round(usedShare * 100)} % of the machine's processors used`;
  console.log(`${"took".padEnd(55)} ${tookSeconds.toFixed(1).padStart(7)} s, ${used}`);
  const slowest = results.flatMap(({ times }) => times).sort((a, b) => b.seconds - a.seconds);
  for (const { file, seconds, processorSeconds } of slowest.slice(0, SLOWEST_SHOWN))
    console.log(`slowest    ${file.padEnd(44)} ${seconds.toFixed(1).padStart(7)} s, ${processors(processorSeconds)}`);
  // Files that share a process begin first, as one.
  for (const { file, seconds, processorSeconds } of slowest)
    if (seconds > LATE_SECONDS && processorSeconds !== undefined && !(file in secondsByFile))
      console.log(
        `late       ${file.padEnd(44)} ${seconds.toFixed(1).padStart(7)} s: it began late, for want of an entry`,
      );
  for (const { group, faults, failures, skips, unsteady } of results) {
    for (const { file, title } of unsteady)
      console.log(`unsteady [${group}] ${file}: ${title} (failed beside others, passed alone)`);
    for (const { file, title, reason } of skips) console.log(`skipped [${group}] ${file}: ${title} (${reason})`);
    for (const { file, title } of failures) console.log(`failed  [${group}] ${file}: ${title}`);
    for (const fault of faults) console.log(`failed  [${group}] ${fault}`);
  }
}
