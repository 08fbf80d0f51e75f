/** Runs one group of the suite and prints what it proved. */
import { join } from "node:path";
import type { TestGroup } from "./test-groups.ts";
import { runTestProcess } from "./test-process.ts";
import type { Verdict } from "./test-verdict.ts";

export interface GroupRunOptions {
  /** The project's root, or a fixture that looks like one. */
  root: string;
  refuseSkips: boolean;
  /** Unix milliseconds by which everything has to be over; what still runs then is killed and fails. */
  deadlineMs?: number;
  print: (text: string) => void;
}

export interface GroupResult extends Verdict {
  group: string;
  seconds: number;
}

/** One process for the whole group, or one a file where its files may not run side by side. */
export async function runGroup(group: TestGroup, options: GroupRunOptions): Promise<GroupResult> {
  const { deadlineMs = Number.POSITIVE_INFINITY } = options;
  const startedAt = performance.now();
  const files = await findFiles(group, options.root);
  if (files.length === 0) return failedGroup(group, `no file matches ${group.patterns.join(", ")}`);
  const batches = group.workers > 1 ? [files] : files.map((file) => [file]);
  const verdicts: Verdict[] = [];
  for (const [index, batch] of batches.entries()) {
    const verdict = await runTestProcess({
      cwd: options.root,
      files: batch,
      workers: group.workers,
      testTimeoutMs: group.testTimeoutMs,
      processTimeoutMs: Math.max(0, Math.min(group.processTimeoutMs, deadlineMs - Date.now())),
      junitPath: join(options.root, ".test-report", `${group.name}-${index}.xml`),
      refuseSkips: options.refuseSkips,
      onOutput: options.print,
    });
    verdicts.push(verdict);
  }
  return { group: group.name, seconds: (performance.now() - startedAt) / 1000, ...sumVerdicts(verdicts) };
}

/** A group that could not be run counts as one failure. */
export function failedGroup({ name }: TestGroup, fault: string): GroupResult {
  return {
    group: name,
    seconds: 0,
    passed: 0,
    failed: 1,
    skipped: 0,
    faults: [fault],
    failures: [],
    skips: [],
    times: [],
  };
}

export function sumVerdicts(verdicts: readonly Verdict[]): Verdict {
  const sum = (key: "passed" | "failed" | "skipped") => verdicts.reduce((total, each) => total + each[key], 0);
  return {
    passed: sum("passed"),
    failed: sum("failed"),
    skipped: sum("skipped"),
    faults: verdicts.flatMap((each) => each.faults),
    failures: verdicts.flatMap((each) => each.failures),
    skips: verdicts.flatMap((each) => each.skips),
    times: verdicts.flatMap((each) => each.times),
  };
}

/** `812 passed, 0 failed`, with `, 3 skipped` only if there are any. */
export function countsLine({ passed, failed, skipped }: Pick<Verdict, "passed" | "failed" | "skipped">): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}

async function findFiles({ patterns }: TestGroup, root: string): Promise<string[]> {
  const found = await Promise.all(
    patterns.map((pattern) => Array.fromAsync(new Bun.Glob(pattern).scan({ cwd: root, onlyFiles: true }))),
  );
  return [...new Set(found.flat())].sort();
}
