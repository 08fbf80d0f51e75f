import { closeSync, fsyncSync, mkdirSync, openSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** Makes the names in a directory durable; whoever writes the files makes their content durable. */
export function syncDirectory(path: string): void {
  if (process.platform === "win32") return; // directories cannot be opened there, and the file system does this by itself
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/**
 * Makes a directory that only its owner can use (0700; STORE-7), with the missing directories above it, and makes their names
 * durable: a crash neither leaves one half made nor loses the path to what is stored in them. Returns whether it made the
 * directory.
 */
export function makeDurableDirectory(path: string): boolean {
  const first = mkdirSync(path, { recursive: true, mode: 0o700 });
  if (first === undefined) return false;
  const top = dirname(resolve(first));
  for (let made = resolve(path); made !== top; made = dirname(made)) syncDirectory(dirname(made));
  return true;
}
