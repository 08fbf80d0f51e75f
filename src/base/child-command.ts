import { existsSync } from "node:fs";

/** On Linux this is the file that is running, even when another file has its name by now. */
const RUNNING = "/proc/self/exe";

/**
 * The command line of a child process that is this same program: `svc __name`. When we run from source, the same Bun runs
 * the entry. An executable that was replaced while it runs still starts children of its own build, because another build
 * may speak another protocol.
 */
export function childCommand(mode: `__${string}`): string[] {
  const executable = existsSync(RUNNING) ? RUNNING : process.execPath;
  if (Bun.isStandaloneExecutable) return [executable, mode];
  return [process.execPath, new URL("../../cli/main.ts", import.meta.url).pathname, mode];
}
