import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A fresh directory that is removed when the scope that holds it ends (`using`) and at the latest at exit. */
export interface ScratchDir extends Disposable {
  readonly path: string;
}

/** In memory where there is such a place: for what proves nothing about disks, and waits for thousands of commits. */
export const memoryDir: string = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

const live = new Set<string>();
process.on("exit", () => {
  for (const path of live) rmSync(path, { recursive: true, force: true });
});

export function scratchDir(label = "svc-test", parent: string = tmpdir()): ScratchDir {
  const path = mkdtempSync(join(parent, `${label}-`));
  live.add(path);
  return {
    path,
    [Symbol.dispose]: () => {
      rmSync(path, { recursive: true, force: true });
      live.delete(path);
    },
  };
}
