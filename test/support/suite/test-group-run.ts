/** Runs groups of the suite, their processes side by side, and prints what they proved. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryDir } from "../scratch.ts";
import type { TestGroup } from "./test-groups.ts";
import { type ProcessVerdict, runTestProcess } from "./test-process.ts";
import type { Verdict } from "./test-verdict.ts";

export interface GroupRunOptions {
  /** The project's root, or a fixture that looks like one. */
  root: string;
  refuseSkips: boolean;
  /** Processes that run at a time; a group's workers count as so many. */
  processes: number;
  /** So many run while `hasTime`, which is asked before each of those above `processes`. */
  more?: { readonly processes: number; readonly hasTime: () => boolean };
  /** What files took that take long: they begin first. */
  secondsByFile?: Readonly<Record<string, number>>;
  /** Unix milliseconds by which everything has to be over; what still runs then is killed and fails. */
  deadlineMs?: number;
  print: (text: string) => void;
}

/** What a group proved. */
export interface GroupResult extends ProcessVerdict {
  group: string;
  /** Tests that failed beside others and passed alone, or whose file did. They count as passed and are named in the summary. */
  unsteady: { file: string; title: string }[];
}

/** More files than this that fail beside others are no chance: none of them is run again. */
const SECOND_RUNS = 3;

/** Files that are to be apart from those of other groups. */
const APART_AT_ONCE = 2;

/** How often is looked whether there is time for more. */
const LOOK_AGAIN_MS = 250;

/** What one process runs. */
interface Job {
  readonly group: TestGroup;
  readonly files: readonly string[];
  readonly junitName: string;
}

/**
 * One process for a whole group, or one a file. Those of all groups run side by side, the longest first; when they are
 * done, those that are to be apart, two at a time, and in the end, one by one, what failed and has a second run. What such a
 * run says counts; what the first one said is in the result, too.
 */
export async function runGroups(groups: readonly TestGroup[], options: GroupRunOptions): Promise<GroupResult[]> {
  const jobs = (await Promise.all(groups.map((group) => jobsOf(group, options.root)))).flat();
  const [apart, beside] = [jobs.filter(({ group }) => group.apart), jobs.filter(({ group }) => !group.apart)];
  const verdicts = new Map<Job, ProcessVerdict>();
  const run = async (job: Job): Promise<void> => void verdicts.set(job, await runJob(job, options));
  await runSideBySide(longestFirst(beside, options.secondsByFile ?? {}), options, run);
  await runSideBySide(apart, { processes: Math.min(APART_AT_ONCE, options.processes) }, run);
  const again = jobs.filter((job) => job.group.secondRun && verdicts.get(job)!.failed > 0);
  const unsteady = again.length > SECOND_RUNS ? [] : await runAgain(again, verdicts, run);
  return groups.map((group) => {
    const own = jobs.filter((job) => job.group === group);
    if (own.length === 0) return failedGroup(group, `no file matches ${group.patterns.join(", ")}`);
    return {
      group: group.name,
      ...sumVerdicts(own.map((job) => verdicts.get(job)!)),
      unsteady: unsteady.filter(({ job }) => job.group === group).map(({ file, title }) => ({ file, title })),
    };
  });
}

/** Runs each job once more and leaves its new verdict; returns what had failed in those that pass now. */
async function runAgain(jobs: readonly Job[], verdicts: Map<Job, ProcessVerdict>, run: (job: Job) => Promise<void>) {
  const unsteady: { job: Job; file: string; title: string }[] = [];
  for (const job of jobs) {
    const { failures, faults } = verdicts.get(job)!;
    await run(job);
    if (verdicts.get(job)!.failed > 0) continue;
    unsteady.push(...failures.map(({ file, title }) => ({ job, file, title })));
    unsteady.push(...faults.map((fault) => ({ job, file: job.files[0]!, title: fault })));
  }
  return unsteady;
}

async function jobsOf(group: TestGroup, root: string): Promise<Job[]> {
  const { name, patterns, workers } = group;
  const found = await Promise.all(
    patterns.map((pattern) => Array.fromAsync(new Bun.Glob(pattern).scan({ cwd: root, onlyFiles: true }))),
  );
  const files = [...new Set(found.flat())].sort();
  const shares = workers === 1 ? files.map((file) => [file]) : files.length > 0 ? [files] : [];
  return shares.map((share, index) => ({ group, files: share, junitName: `${name}-${index}.xml` }));
}

/** Groups with workers take longest; files of which nothing is known follow by name. */
function longestFirst(jobs: readonly Job[], secondsByFile: Readonly<Record<string, number>>): Job[] {
  const seconds = ({ files }: Job) => (files.length > 1 ? Number.MAX_VALUE : (secondsByFile[files[0]!] ?? 0));
  return jobs.toSorted((a, b) => seconds(b) - seconds(a));
}

/** Begins every job in this order, as soon as there is room for it. */
async function runSideBySide(
  jobs: readonly Job[],
  { processes, more }: Pick<GroupRunOptions, "processes" | "more">,
  run: (job: Job) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>();
  let taken = 0;
  const hasRoom = (width: number): boolean =>
    taken + width <= processes || (more !== undefined && taken + width <= more.processes && more.hasTime());
  for (const job of jobs) {
    const width = Math.min(job.group.workers, processes);
    while (!hasRoom(width)) await Promise.race([...running, ...(more ? [Bun.sleep(LOOK_AGAIN_MS)] : [])]);
    taken += width;
    const done: Promise<void> = run(job).finally(() => {
      taken -= width;
      running.delete(done);
    });
    running.add(done);
  }
  await Promise.all(running);
}

async function runJob({ group, files, junitName }: Job, options: GroupRunOptions): Promise<ProcessVerdict> {
  const { root, refuseSkips, print, deadlineMs = Number.POSITIVE_INFINITY } = options;
  const written: string[] = [];
  const startedAt = performance.now();
  const verdict = await runTestProcess({
    cwd: root,
    files,
    workers: group.workers,
    testTimeoutMs: group.testTimeoutMs,
    processTimeoutMs: Math.max(0, Math.min(group.processTimeoutMs, deadlineMs - Date.now())),
    dataDir: group.data === "memory" ? memoryDir() : tmpdir(),
    junitPath: join(root, ".test-report", junitName),
    refuseSkips,
    onOutput: (text) => void written.push(text),
  });
  const [first, ...others] = files;
  const what = others.length === 0 ? first : `${files.length} files of ${group.name}`;
  print(`-- ${what}: ${countsLine(verdict)} in ${((performance.now() - startedAt) / 1000).toFixed(1)} s\n`);
  print(written.join(""));
  return verdict;
}

/** A group that could not be run counts as one failure. */
export function failedGroup({ name }: TestGroup, fault: string): GroupResult {
  return { group: name, ...sumVerdicts([]), failed: 1, faults: [fault], unsteady: [] };
}

export function sumVerdicts(verdicts: readonly ProcessVerdict[]): ProcessVerdict {
  const sum = (key: "passed" | "failed" | "skipped" | "processorSeconds") =>
    verdicts.reduce((total, each) => total + each[key], 0);
  return {
    passed: sum("passed"),
    failed: sum("failed"),
    skipped: sum("skipped"),
    processorSeconds: sum("processorSeconds"),
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
