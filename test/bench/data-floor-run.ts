import { join } from "node:path";
import { linesOf } from "./child-lines.ts";
import type { FloorRequest } from "./data-floor.ts";

/** Raw SQLite over copies of a space's rows, in a process of its own. */
export interface DataFloor extends AsyncDisposable {
  ask<T>(request: FloorRequest): Promise<T>;
}

export function startDataFloor(databasePath: string): DataFloor {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "data-floor.ts"), databasePath], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const answers = linesOf(child.stdout);
  return {
    async ask<T>(request: FloorRequest): Promise<T> {
      await child.stdin.write(`${JSON.stringify(request)}\n`);
      await child.stdin.flush();
      const { value, done } = await answers.next();
      if (done) throw new Error(`the floor ended before it answered ${request.kind}`);
      return JSON.parse(value) as T;
    },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
