/**
 * The command line of a child process that is this same program: `svc __name`. From source the entry is run by the
 * same Bun.
 */
export function childCommand(mode: `__${string}`): string[] {
  if (Bun.isStandaloneExecutable) return [process.execPath, mode];
  return [process.execPath, new URL("../../cli/main.ts", import.meta.url).pathname, mode];
}
