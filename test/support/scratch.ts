import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A fresh directory that is removed when the scope that holds it ends (`using`) and at the latest at exit. */
export interface ScratchDir extends Disposable {
  readonly path: string;
}

const live = new Set<string>();
process.on("exit", () => {
  for (const path of live) rmSync(path, { recursive: true, force: true });
});

export function scratchDir(label = "svc-test"): ScratchDir {
  const path = mkdtempSync(join(tmpdir(), `${label}-`));
  live.add(path);
  return {
    path,
    [Symbol.dispose]: () => {
      rmSync(path, { recursive: true, force: true });
      live.delete(path);
    },
  };
}
