/** How long a write takes to reach every reader of a live window. */
import { join } from "node:path";
import { linesOf } from "./child-lines.ts";
import { median } from "./report.ts";

export interface FanOut {
  port: number;
  path: string;
  body: string;
  readers: number;
  rounds: number;
  /** Writes something that every reader's window shows. */
  write: (round: number) => Promise<unknown>;
}

/** Medians in milliseconds: until the write is answered, and until the last reader has its frame. */
export async function measureFanOut({ port, path, body, readers, rounds, write }: FanOut) {
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dir, "fan-out-readers.ts"), String(port), path, body, String(readers)],
    { stdin: "ignore", stdout: "pipe", stderr: "inherit" },
  );
  const lines = linesOf(child.stdout);
  const next = async (): Promise<string> => {
    const { value, done } = await lines.next();
    if (done) throw new Error("the readers ended");
    return value;
  };
  await next(); // all have their snapshot
  const answered: number[] = [];
  const delivered: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const startedAt = performance.timeOrigin + performance.now();
    await write(round);
    answered.push(performance.timeOrigin + performance.now() - startedAt);
    delivered.push(Number(await next()) - startedAt);
  }
  child.kill();
  await child.exited;
  return { answeredMs: median(answered), deliveredMs: median(delivered) };
}

/** A bare server that writes to SQLite and streams what it wrote. */
export async function startFanOutFloor(databasePath: string): Promise<AsyncDisposable & { port: number }> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "fan-out-floor.ts"), databasePath], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await linesOf(child.stdout).next();
  if (value === undefined) throw new Error("the floor of the fan-out did not start");
  return {
    port: Number(value),
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
