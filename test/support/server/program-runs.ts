/** Runs programs in children of the source tree or of an executable, with a host of the test's own. */

import { childCommand } from "../../../src/base/child-command.ts";
import { silentLog } from "../../../src/base/log.ts";
import { PROGRAM_CHILD } from "../../../src/sandbox/program-limits.ts";
import type { CallOutcome, ProgramProcesses, RunEnd } from "../../../src/sandbox/program-processes.ts";
import { createProgramProcesses } from "../../../src/sandbox/program-processes.ts";
import type { ProgramCall, ProgramStart } from "../../../src/sandbox/program-protocol.ts";

const MIB_64_PAGES = 1024;

export interface TestRun {
  source: string;
  args?: unknown;
  fuel?: number;
  maxPages?: number;
  timeoutMs?: number;
  seed?: number;
  call?: (call: ProgramCall) => Promise<CallOutcome>;
  signal?: AbortSignal;
}

export interface TestPrograms {
  readonly processes: ProgramProcesses;
  run(run: TestRun): Promise<RunEnd>;
}

/** `binary` is an executable to run them in; the source tree without one. */
export function createTestPrograms(binary?: string): TestPrograms {
  const processes = createProgramProcesses({
    command: binary === undefined ? childCommand(PROGRAM_CHILD) : [binary, PROGRAM_CHILD],
    log: silentLog,
    nowMs: () => 1_700_000_000_000,
    graceMs: 500,
  });
  return {
    processes,
    run: ({ source, args = {}, fuel = 50_000_000, maxPages = MIB_64_PAGES, timeoutMs = 20_000, seed = 7, ...rest }) => {
      const start: ProgramStart = {
        source,
        args: JSON.stringify(args),
        context: JSON.stringify({ runId: "run_0" }),
        fuel,
        maxPages,
        timeoutMs,
        nowMs: 1_700_000_000_000,
        seed,
      };
      const echo = async (call: ProgramCall): Promise<CallOutcome> => ({ output: call.input });
      return processes.run({
        start,
        call: rest.call ?? echo,
        signal: rest.signal ?? new AbortController().signal,
      });
    },
  };
}
