/**
 * What one `bun test` process proved. None of its signs is honest alone: a test that exits the process gives exit code
 * 0 and no report, a file that throws while loading is missing from the report. So every sign has to be there and
 * all have to agree; each disagreement counts as a failure.
 */
import { type JunitReport, parseJunit } from "./junit-report.ts";
import { skipReason } from "./skip-reason.ts";

export interface Verdict {
  passed: number;
  failed: number;
  skipped: number;
  /** Why something counts as failed beyond the failing tests themselves. */
  faults: string[];
  failures: { file: string; title: string }[];
  skips: { file: string; title: string; reason: string }[];
  /** What the tests of each file took together. */
  times: { file: string; seconds: number }[];
}

export interface TestProcessSigns {
  /** Test files that were handed to the process, relative to its working directory. */
  files: readonly string[];
  /** Null if a signal ended it. */
  exitCode: number | null;
  /** Everything it printed. */
  output: string;
  /** Content of the JUnit file, which was deleted before the start. */
  junit: string | undefined;
}

export function judgeTestProcess({ files, exitCode, output, junit }: TestProcessSigns): Verdict {
  const summary = parseSummary(output);
  const report = junit === undefined ? undefined : parseJunit(junit);
  const faults = [
    ...missingSigns(summary, report, junit),
    ...(summary && report ? disagreements(summary, report) : []),
    ...(summary && summary.files !== files.length ? [`${files.length} files were given, ${summary.files} ran`] : []),
    ...silentFiles(files, report).map((file) => `${file} reported no test: it did not load, ended early or is empty`),
    ...silentSkips(report).map((each) => `${each.file}: "${each.title}" is skipped without a reason; use skipUnless`),
  ];
  const failures = report?.cases.filter((each) => each.outcome === "failed") ?? [];
  if (exitCode !== 0 && failures.length + faults.length === 0) {
    faults.push(`exit code ${exitCode} although no test failed`);
  }
  return {
    passed: Math.min(summary?.pass ?? 0, report ? report.tests - report.failures - report.skipped : 0),
    failed: Math.max(failures.length + faults.length, summary?.fail ?? 0),
    skipped: report?.skipped ?? 0,
    faults,
    failures: failures.map(({ file, title }) => ({ file, title })),
    skips: namedSkips(report),
    times: timesByFile(report),
  };
}

function timesByFile(report: JunitReport | undefined): Verdict["times"] {
  const secondsByFile = new Map<string, number>();
  for (const { file, seconds } of report?.cases ?? [])
    secondsByFile.set(file, (secondsByFile.get(file) ?? 0) + seconds);
  return [...secondsByFile].map(([file, seconds]) => ({ file, seconds }));
}

interface Summary {
  pass: number;
  fail: number;
  skip: number;
  todo: number;
  errors: number;
  tests: number;
  files: number;
}

/** The block of counts that ends the output, or undefined if it does not end with one. */
function parseSummary(output: string): Summary | undefined {
  const lines = output.replaceAll("\r", "").trimEnd().split("\n").slice(-9);
  const ran = /^Ran (\d+) tests? across (\d+) files?\. /.exec(lines.at(-1) ?? "");
  if (!ran) return undefined;
  const count = (word: string) =>
    Number(lines.map((line) => new RegExp(`^ *(\\d+) ${word}s?$`).exec(line)?.[1]).findLast(Boolean) ?? 0);
  return {
    pass: count("pass"),
    fail: count("fail"),
    skip: count("skip"),
    todo: count("todo"),
    errors: count("error"),
    tests: Number(ran[1]),
    files: Number(ran[2]),
  };
}

/** A process that ended in the middle shows none of the signs, and that is one fault. */
function missingSigns(
  summary: Summary | undefined,
  report: JunitReport | undefined,
  junit: string | undefined,
): string[] {
  if (!summary) return ["the process ended in the middle: its closing `Ran N tests` line is missing"];
  if (!report) return [junit === undefined ? "no JUnit file was written" : "the JUnit file is damaged"];
  return [];
}

function disagreements(summary: Summary, report: JunitReport): string[] {
  const pairs: [string, number, number][] = [
    ["passed", summary.pass, report.tests - report.failures - report.skipped],
    ["skipped", summary.skip + summary.todo, report.skipped],
    // A file that cannot be loaded is a failure on the console and absent from the report.
    ["failed", summary.fail - summary.errors, report.failures],
  ];
  return pairs
    .filter(([, console, junit]) => console !== junit)
    .map(([what, console, junit]) => `the console says ${console} ${what}, the JUnit file ${junit}`);
}

function silentFiles(files: readonly string[], report: JunitReport | undefined): string[] {
  if (!report) return [];
  const reported = new Set(report.cases.map((each) => each.file));
  return files.filter((file) => !reported.has(file));
}

function silentSkips(report: JunitReport | undefined) {
  return report?.cases.filter((each) => each.outcome === "skipped" && skipReason(each.title) === undefined) ?? [];
}

function namedSkips(report: JunitReport | undefined): Verdict["skips"] {
  return (report?.cases ?? []).flatMap(({ file, title, outcome }) => {
    const reason = outcome === "skipped" ? skipReason(title) : undefined;
    return reason === undefined ? [] : [{ file, title, reason }];
  });
}
