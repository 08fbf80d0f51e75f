import { mkdtempSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A fresh directory that is removed when the scope that holds it ends (`using`) and at the latest at exit. */
export interface ScratchDir extends Disposable {
  readonly path: string;
}

const MEMORY_DIR = "/dev/shm";
/** More than all that runs side by side holds; a container's 64 MB are none to count on. */
const ROOM_BYTES = 6e9;

/** In memory where there is a place with room for it: for what proves nothing about disks, and waits for thousands of commits. */
export function memoryDir(): string {
  return hasRoom() && mayExecute() ? MEMORY_DIR : tmpdir();
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY_DIR);
    return bavail * bsize >= ROOM_BYTES;
  } catch {
    return false; // this system has no such place
  }
}

/** Tests run executables that they have put there. */
function mayExecute(): boolean {
  const mounts = readFileSync("/proc/mounts", "utf8").split("\n");
  const options = mounts.findLast((line) => line.split(" ")[1] === MEMORY_DIR)?.split(" ")[3];
  return options?.split(",").includes("noexec") === false;
}

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
