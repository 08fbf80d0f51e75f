import { randomUUID } from "node:crypto";
import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";

/** Makes a directory, which only its owner can read, for native libraries that are extracted from the executable. */
export function makeLibraryDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  chmodSync(path, 0o700);
}

/**
 * Puts a native library in its place, complete: a truncated one would kill the process with SIGBUS, and a planted one
 * would run with our rights. A crash leaves at most a `.tmp` file, which nothing loads. `isThere` returns whether the
 * library is in place: another process may have put it there first (Windows refuses to replace a loaded one).
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
