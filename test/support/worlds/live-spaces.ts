/** Spaces with live queries that are closed after each test. */
import { afterEach } from "bun:test";
import { type LiveSpace, openLiveSpace } from "./live-space.ts";

/** Openers of spaces that are closed after each test of the file. */
export function useLiveSpaces() {
  const spaces: LiveSpace[] = [];
  afterEach(async () => {
    for (const space of spaces.splice(0)) await space.close();
  });

  const openSpace = async (options?: Parameters<typeof openLiveSpace>[0]): Promise<LiveSpace> => {
    const space = await openLiveSpace(options);
    spaces.push(space);
    return space;
  };
  return {
    openSpace,
    /** Records a, b, c… with n = 0, 1, 2… */
    withRecords: async (count: number, options?: Parameters<typeof openLiveSpace>[0]): Promise<LiveSpace> => {
      const space = await openSpace(options);
      const ids = Array.from({ length: count }, (_, n) => ({ id: `r${String(n).padStart(4, "0")}`, n }));
      await space.write(
        ids.map(({ id, n }) => ({ id, upsert: true, ops: [{ type: "$set", path: "", value: { n } }] })),
      );
      return space;
    },
  };
}

export const summary = (entries: { added?: { id: string }[]; updated?: { id: string }[]; removed?: unknown[] }[]) =>
  entries.map(({ added, updated, removed }) => ({
    ...(added ? { added: added.map(({ id }) => id) } : {}),
    ...(updated ? { updated: updated.map(({ id }) => id) } : {}),
    ...(removed ? { removed } : {}),
  }));
