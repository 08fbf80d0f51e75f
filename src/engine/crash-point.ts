/** Set by crash tests: the process kills itself at the named point, as a power cut would. */
const CRASH_AT = process.env["SVC_CRASH_AT"];

export function crashPoint(name: string): void {
  if (CRASH_AT === name) process.kill(process.pid, "SIGKILL");
}
