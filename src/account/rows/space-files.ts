import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { makeDurableDirectory, syncDirectory } from "../../base/durable-directory.ts";
import type { SpaceId } from "../../base/ids.ts";

export type SpacePaths = ReturnType<typeof spacePaths>;

/** Where the databases of an account lie: `<account-dir>/sdk/`. */
export function spacePaths(accountDir: string) {
  const sdk = join(accountDir, "sdk");
  makeDurableDirectory(sdk);
  return {
    sdk,
    account: join(sdk, "account.db"),
    space: (spaceId: SpaceId) => join(sdk, `${spaceId}.db`),
    hasSpace: (spaceId: SpaceId): boolean => existsSync(join(sdk, `${spaceId}.db`)),
    /** Makes the names of new files durable; their contents already are. */
    syncDirectory: (): void => syncDirectory(sdk),
    removeSpace(spaceId: SpaceId): void {
      for (const suffix of ["", "-wal", "-shm", ".new"]) rmSync(join(sdk, `${spaceId}.db${suffix}`), { force: true });
    },
  };
}
