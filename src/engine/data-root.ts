import { chmodSync, statSync } from "node:fs";
import { makeDurableDirectory } from "../base/durable-directory.ts";
import { StartRefusal } from "./start-refusal.ts";

/** Creates the data root, and gives it to its owner alone (0700) whether it is new or existed. */
export function prepareDataRoot(dataDir: string): void {
  try {
    makeDurableDirectory(dataDir);
    if (process.platform !== "win32" && (statSync(dataDir).mode & 0o777) !== 0o700) chmodSync(dataDir, 0o700);
  } catch (error) {
    throw new StartRefusal(
      `The data root ${dataDir} cannot be used: ${(error as Error).message}; --data-dir or SVC_DATA_DIR names another`,
    );
  }
}
