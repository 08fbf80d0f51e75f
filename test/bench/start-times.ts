/** Cold start and idle memory. */
import { readFileSync } from "node:fs";
import { scratchDir } from "../support/scratch.ts";
import { BINARY, childEnv, startServer } from "../support/server/server.ts";
import { type Line, median, milliseconds } from "./report.ts";

/** Median wall time of a process from spawn to exit, in milliseconds. */
function medianRunMs(command: string[], runs: number): number {
  using home = scratchDir("svc-bench-home");
  return median(
    Array.from({ length: runs }, () => {
      const startedAt = performance.now();
      const ran = Bun.spawnSync(command, { env: childEnv(home.path), stdout: "ignore", stderr: "ignore" });
      if (ran.exitCode !== 0) throw new Error(`${command.join(" ")} ended with ${ran.exitCode}`);
      return performance.now() - startedAt;
    }),
  );
}

/** Median time from spawn to the LISTENING line, in milliseconds. */
export async function medianListeningMs(dataDir: string | undefined, runs: number): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < runs; i++) {
    let spawnedAt = 0;
    const server = await startServer({
      ...(dataDir === undefined ? {} : { dataDir }),
      account: false,
      onSpawn: () => {
        spawnedAt = performance.now();
      },
    });
    times.push(performance.now() - spawnedAt);
    await server[Symbol.asyncDispose]();
  }
  return median(times);
}

async function idleRssMiB(): Promise<number> {
  await using server = await startServer();
  await Bun.sleep(3_000);
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))![1]) / 1024;
}

export async function startLines(runs: number): Promise<Line[]> {
  const bun = medianRunMs([process.execPath, "--version"], runs);
  const version = medianRunMs([BINARY, "version"], runs);
  const empty = await medianListeningMs(undefined, runs);
  const rss = await idleRssMiB();
  return [
    {
      name: "svc version, beyond bun --version",
      figures: `${milliseconds(version)} against ${milliseconds(bun)}`,
      value: version - bun,
      aim: { atMost: 20, unit: "ms" },
    },
    {
      name: "LISTENING, empty data root",
      figures: milliseconds(empty),
      value: empty,
      aim: { atMost: 100, unit: "ms" },
    },
    { name: "idle memory", figures: `${rss.toFixed(0)} MiB RSS`, value: rss, aim: { atMost: 90, unit: "MB" } },
  ];
}
