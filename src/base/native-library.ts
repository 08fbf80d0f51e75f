import { randomUUID } from "node:crypto";
import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";

/** A directory for native libraries that were taken out of the executable: its owner's alone. */
export function makeLibraryDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  chmodSync(path, 0o700);
}

/**
 * Puts a native library in its place, whole: a truncated one kills the process with SIGBUS, a planted one runs as us. A crash
 * leaves at most a `.tmp` file, which nothing loads. `isThere` says whether it is in its place by now: another process may
 * have put it there first (Windows refuses to replace a loaded one).
 */
export function putLibrary(path: string, bytes: Uint8Array, isThere: () => boolean): void {
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    writeDurably(temporary, bytes);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    if (!isThere()) throw error;
  }
}

function writeDurably(path: string, bytes: Uint8Array): void {
  const file = openSync(path, "wx", 0o500);
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
