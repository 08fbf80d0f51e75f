import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The contents of every file below a directory. */
export const filesBelow = (directory: string): Buffer[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)));
