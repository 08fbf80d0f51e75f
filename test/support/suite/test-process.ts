/** Runs test files in one `bun test` process and judges it. */
import { mkdir, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { scratchDir } from "../scratch.ts";
import { judgeTestProcess, type Verdict } from "./test-verdict.ts";

export interface TestProcessOptions {
  /** Working directory; `files` are relative to it. */
  cwd: string;
  files: readonly string[];
  /** Files run side by side, each in its own process if more than one. */
  workers: number;
  /** Limit for a single test that sets none itself. */
  testTimeoutMs: number;
  /** Limit for the whole process, after which it is killed with everything it started. */
  processTimeoutMs: number;
  /** Where the tests keep what they write; a directory of theirs in it is removed at the end. */
  dataDir: string;
  /** Where the JUnit file goes; an old one is deleted first. */
  junitPath: string;
  /** Whether a skip is a failure. */
  refuseSkips: boolean;
  /** Receives what the process prints, as it comes. */
  onOutput: (chunk: string) => void;
}

export interface ProcessVerdict extends Verdict {
  /** What the process and those that it started and waited for computed. */
  processorSeconds: number;
  /** What each file took; of several files of one process only what their tests took. */
  times: { file: string; seconds: number; processorSeconds?: number }[];
}

/** Never throws for what the tests do: whatever they do to the process ends up in the verdict. */
export async function runTestProcess(options: TestProcessOptions): Promise<ProcessVerdict> {
  const { cwd, files, junitPath, onOutput } = options;
  const startedAt = performance.now();
  using data = scratchDir("svc-tests", options.dataDir);
  await rm(junitPath, { force: true });
  await mkdir(dirname(junitPath), { recursive: true });
  const child = Bun.spawn(testCommand(options), {
    cwd,
    env: { ...process.env, TMPDIR: data.path, CI: "true", TEST_SKIPS: options.refuseSkips ? "refused" : "allowed" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    // A process group of its own, so that what the tests started can be found and ended with it.
    detached: true,
  });
  const stop = () => killGroup(child.pid);
  process.once("exit", stop);
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    stop();
  }, options.processTimeoutMs);
  try {
    const reading = Promise.all([read(child.stdout, onOutput), read(child.stderr, onOutput)]);
    await child.exited;
    const clean = await groupIsGone(child.pid);
    stop();
    const [stdout, stderr] = await reading;
    const junit = Bun.file(junitPath);
    const verdict = judgeTestProcess({
      files,
      exitCode: child.exitCode,
      // The summary is on stderr.
      output: `${stdout}\n${stderr}`,
      junit: (await junit.exists()) ? await junit.text() : undefined,
    });
    const fault = timedOut
      ? `killed after ${options.processTimeoutMs / 1000} s`
      : clean
        ? undefined
        : "the tests left processes running";
    const processorSeconds = Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6;
    const [file, ...others] = files;
    const seconds = (performance.now() - startedAt) / 1000;
    return {
      ...(fault === undefined ? verdict : withFault(verdict, fault)),
      processorSeconds,
      times: file !== undefined && others.length === 0 ? [{ file, seconds, processorSeconds }] : verdict.times,
    };
  } finally {
    clearTimeout(timer);
    process.off("exit", stop);
  }
}

function testCommand({ files, workers, testTimeoutMs, junitPath }: TestProcessOptions): string[] {
  return [
    process.execPath,
    "test",
    "--only-failures",
    `--timeout=${testTimeoutMs}`,
    ...(workers > 1 && files.length > 1 ? [`--parallel=${workers}`] : []),
    "--reporter=junit",
    `--reporter-outfile=${junitPath}`,
    ...files.map((file) => `./${file}`),
  ];
}

async function read(stream: ReadableStream<Uint8Array>, onOutput: (chunk: string) => void): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of stream) {
    const chunk = decoder.decode(bytes, { stream: true });
    text += chunk;
    onOutput(chunk);
  }
  return text;
}

function withFault(verdict: Verdict, fault: string): Verdict {
  return { ...verdict, failed: verdict.failed + 1, faults: [...verdict.faults, fault] };
}

/** Waits for what is on its way out: helpers of a server that was killed end when they have done what they are about. */
async function groupIsGone(leader: number): Promise<boolean> {
  for (let waitedMs = 0; waitedMs < 3_000; waitedMs += 20) {
    if (!groupIsAlive(leader)) return true;
    await Bun.sleep(20);
  }
  return !groupIsAlive(leader);
}

function groupIsAlive(leader: number): boolean {
  try {
    process.kill(-leader, 0);
    return true;
  } catch {
    return false;
  }
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, "SIGKILL");
  } catch {
    // Nobody is left in it.
  }
}
