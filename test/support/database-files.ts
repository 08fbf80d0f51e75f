import { readdirSync } from "node:fs";
import { join } from "node:path";

/** The database files below a data root that hold what cannot be rebuilt. */
export function databaseFiles(root: string): string[] {
  return readdirSync(root, { recursive: true })
    .map(String)
    .filter((name) => /(^|\/)sdk\/.*\.db$/.test(name))
    .map((name) => join(root, name));
}
