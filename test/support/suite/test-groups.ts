/** The parts of the suite. */
export interface TestGroup {
  name: string;
  /** What its files match, relative to the project. */
  patterns: readonly string[];
  /** Whether its tests start dist/svc. */
  needsExecutable: boolean;
  /** Test files that one process of the whole group runs side by side; with 1 each file has a process of its own. */
  workers: number;
  /** Whether its files run when those of all other groups are done, two at a time: on a real clock, they wait most of the time. */
  apart: boolean;
  /**
   * Whether a file of it that fails beside others is run once more, alone. Only for tests that watch processes and networks
   * on a real clock, where a busy machine can be the reason; what draws its own seeds or looks for lost data has one run.
   */
  secondRun: boolean;
  /** Where its tests keep what they write: on a disk what kills processes at any moment, and what is about disks. */
  data: "memory" | "disk";
  /** Limit for a single test that sets none itself. */
  testTimeoutMs: number;
  /** Limit for a process. */
  processTimeoutMs: number;
}

const minutes = (count: number): number => count * 60_000;

export const UNIT_GROUP: TestGroup = {
  name: "unit",
  // Published vectors are data in test/vectors; most of their tests stand beside the source.
  patterns: ["{src,cli,ui}/**/*.test.{ts,tsx}", "test/{support,vectors}/**/*.test.ts", "*.test.ts"],
  needsExecutable: false,
  workers: 2,
  apart: false,
  secondRun: false,
  data: "memory",
  testTimeoutMs: 20_000,
  processTimeoutMs: minutes(15),
};

export const TEST_GROUPS: readonly TestGroup[] = [
  UNIT_GROUP,
  {
    name: "property",
    patterns: ["test/property/**/*.test.ts"],
    needsExecutable: true,
    workers: 1,
    apart: false,
    secondRun: false,
    data: "memory",
    testTimeoutMs: minutes(2),
    processTimeoutMs: minutes(10),
  },
  {
    name: "scenario",
    patterns: ["test/scenario/**/*.test.ts"],
    needsExecutable: true,
    workers: 1,
    apart: false,
    secondRun: true,
    data: "memory",
    testTimeoutMs: minutes(1),
    processTimeoutMs: minutes(10),
  },
  {
    name: "fault",
    patterns: ["test/fault/**/*.test.ts"],
    needsExecutable: true,
    workers: 1,
    apart: false,
    secondRun: true,
    data: "memory",
    testTimeoutMs: minutes(2),
    processTimeoutMs: minutes(10),
  },
  {
    // What has to happen within seconds.
    name: "timed",
    patterns: ["test/timed/**/*.test.ts"],
    needsExecutable: true,
    workers: 1,
    apart: true,
    secondRun: true,
    data: "memory",
    testTimeoutMs: minutes(2),
    processTimeoutMs: minutes(6),
  },
  {
    name: "crash",
    patterns: ["test/crash/**/*.test.ts"],
    needsExecutable: true,
    workers: 1,
    apart: false,
    secondRun: false,
    data: "disk",
    testTimeoutMs: minutes(10),
    processTimeoutMs: minutes(12),
  },
];
