/** How long small requests take while something else goes on. */
import type { Client } from "./server/client.ts";

export interface Latency {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly count: number;
}

/** One request after the other, for so long. */
export async function measureReads(client: Client, path: string, forMs: number): Promise<Latency> {
  const times: number[] = [];
  for (const until = performance.now() + forMs; performance.now() < until; ) {
    const startedMs = performance.now();
    await client.get(path);
    times.push(performance.now() - startedMs);
  }
  times.sort((one, other) => one - other);
  const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))] as number;
  return { p50Ms: at(0.5), p99Ms: at(0.99), count: times.length };
}

/** How long it takes, in milliseconds. */
export async function timed(run: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await run();
  return performance.now() - startedMs;
}

/** The same of what ends before it returns. */
export function timedCall(run: () => unknown): number {
  const startedMs = performance.now();
  run();
  return performance.now() - startedMs;
}
