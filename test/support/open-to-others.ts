import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** What lies below a data root that others than its owner may read, write or enter. */
export const openToOthers = (root: string): string[] =>
  readdirSync(root, { recursive: true })
    .map(String)
    .filter((name) => ((statSync(join(root, name), { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0);
