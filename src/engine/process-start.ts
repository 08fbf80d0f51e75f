import { readFileSync } from "node:fs";

/** Whether a process with this id exists. */
export function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/**
 * Returns when a process started, in the kernel's own terms (boot id and clock ticks, proc(5)), which tells a process from a
 * later one with the same id. Returns `undefined` where the system does not say.
 */
export function processStart(pid: number): string | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const bootId = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the command in parentheses and may hold anything; starttime is the 22nd.
    const ticks = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
    return ticks ? `${bootId}:${ticks}` : undefined;
  } catch {
    return undefined; // the process is gone, or /proc is not mounted
  }
}
