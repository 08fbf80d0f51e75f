/** What a server holds open. */
import { readdirSync } from "node:fs";
import { until } from "./client.ts";

export const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

/** Until a server holds no more open than it did before, but for so many: the connections that ended are closed there, too. */
export const untilLetGo = (pid: number, before: number, slack = 0): Promise<void> =>
  until(() => descriptorsOf(pid) <= before + slack, "the server to close what its clients closed");
