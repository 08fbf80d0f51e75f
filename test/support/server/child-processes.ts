/** The processes of its own that a server started. */
import { readdirSync, readFileSync } from "node:fs";

/** Children of a server that were started as `svc <mode>`. */
export function childrenOf(pid: number, mode: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const parent = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1];
        const words = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0");
        return Number(parent) === pid && words.includes(mode) ? [Number(name)] : [];
      } catch {
        return []; // it ended meanwhile
      }
    });
}
