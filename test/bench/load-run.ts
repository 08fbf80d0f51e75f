/** Runs the load generator against the server or a floor, each in a process of its own. */
import { join } from "node:path";
import type { LoadPlan, LoadResult } from "./workload.ts";

const here = import.meta.dir;

export async function runLoad(plan: LoadPlan): Promise<LoadResult> {
  const child = Bun.spawn([process.execPath, join(here, "load-client.ts"), JSON.stringify(plan)], {
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(`load ${plan.kind} failed: ${stderr}`);
  return JSON.parse(stdout) as LoadResult;
}

export interface Floor extends AsyncDisposable {
  port: number;
}

export async function startFloor(databasePath: string, size: number): Promise<Floor> {
  const child = Bun.spawn([process.execPath, join(here, "floor-server.ts"), databasePath, String(size)], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  if (!value) throw new Error("the floor server did not start");
  return {
    port: Number(new TextDecoder().decode(value).trim()),
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

/** Records a second that raw SQLite takes in; `indexed`: it keeps an index on `group`. */
export async function runFloorUpsert(run: {
  path: string;
  first: number;
  count: number;
  indexed: boolean;
}): Promise<number> {
  const child = Bun.spawn([process.execPath, join(here, "floor-upsert.ts"), JSON.stringify(run)], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const text = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error("the upsert floor failed");
  return Number(text);
}
