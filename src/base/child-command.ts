import { existsSync } from "node:fs";

/** On Linux the file that runs, whatever lies under its name by now. */
const RUNNING = "/proc/self/exe";

/**
 * The command line of a child process that is this same program: `svc __name`. From source the entry is run by the
 * same Bun. An executable that was replaced while it runs has children of its own build: another one may say other things.
 */
export function childCommand(mode: `__${string}`): string[] {
  const executable = existsSync(RUNNING) ? RUNNING : process.execPath;
  if (Bun.isStandaloneExecutable) return [executable, mode];
  return [process.execPath, new URL("../../cli/main.ts", import.meta.url).pathname, mode];
}
