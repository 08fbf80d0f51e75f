/** Runs one group of the suite and prints what it proved. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryDir } from "./scratch.ts";
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

/** One process for the whole group, or one a file, of which so many run at a time as the group says. */
export async function runGroup(group: TestGroup, options: GroupRunOptions): Promise<GroupResult> {
  const { deadlineMs = Number.POSITIVE_INFINITY } = options;
  const startedAt = performance.now();
  const files = await findFiles(group, options.root);
  if (files.length === 0) return failedGroup(group, `no file matches ${group.patterns.join(", ")}`);
  const limits = () => ({
    cwd: options.root,
    workers: group.workers,
    testTimeoutMs: group.testTimeoutMs,
    processTimeoutMs: Math.max(0, Math.min(group.processTimeoutMs, deadlineMs - Date.now())),
    refuseSkips: options.refuseSkips,
    dataDir: group.data === "memory" ? memoryDir() : tmpdir(),
  });
  const reportOf = (index: number) => join(options.root, ".test-report", `${group.name}-${index}.xml`);
  const isAlone = group.processes === 1;
  const verdicts =
    group.workers > 1
      ? [await runTestProcess({ ...limits(), files, junitPath: reportOf(0), onOutput: options.print })]
      : await inTurns(files, group.processes, async (file, index) => {
          const written: string[] = [];
          const onOutput = isAlone ? options.print : (text: string) => void written.push(text);
          const verdict = await runTestProcess({ ...limits(), files: [file], junitPath: reportOf(index), onOutput });
          options.print(written.join(""));
          return verdict;
        });
  return { group: group.name, seconds: (performance.now() - startedAt) / 1000, ...sumVerdicts(verdicts) };
}

/** Does `work` for every item, for so many at a time; the results are in the order of the items. */
async function inTurns<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const left = [...items.entries()].values();
  const takeOn = async (): Promise<void> => {
    for (const [index, item] of left) results[index] = await work(item, index);
  };
  await Promise.all(Array.from({ length: atOnce }, takeOn));
  return results;
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

async function findFiles({ patterns, longest }: TestGroup, root: string): Promise<string[]> {
  const found = await Promise.all(
    patterns.map((pattern) => Array.fromAsync(new Bun.Glob(pattern).scan({ cwd: root, onlyFiles: true }))),
  );
  const files = new Set(found.flat().sort());
  return [...new Set([...longest.filter((file) => files.has(file)), ...files])];
}
