import { closeSync, fsyncSync, mkdirSync, openSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** Makes the names in a directory durable; what the files hold is their writers' matter. */
export function syncDirectory(path: string): void {
  if (process.platform === "win32") return; // directories cannot be opened there, and the file system does it by itself
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/**
 * Makes a directory for its owner alone (0700), with those above it that are missing, and their names durable: a crash leaves
 * none of them half made, nor what is stored in them without a way to it. Answers whether it was made.
 */
export function makeDurableDirectory(path: string): boolean {
  const first = mkdirSync(path, { recursive: true, mode: 0o700 });
  if (first === undefined) return false;
  const top = dirname(resolve(first));
  for (let made = resolve(path); made !== top; made = dirname(made)) syncDirectory(dirname(made));
  return true;
}
