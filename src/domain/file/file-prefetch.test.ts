import { expect, test } from "bun:test";
import { loopTurns } from "../../../test/support/loop-turns.ts";
import type { SpaceId } from "../../base/ids.ts";
import { silentLog } from "../../base/log.ts";
import type { Content } from "../../files/content.ts";
import type { ContentStore } from "../../files/content-store.ts";
import type { FileContent } from "../../store/tables/file-table.ts";
import type { FileContents } from "./file-contents.ts";
import { createFilePrefetch } from "./file-prefetch.ts";

const SPACE = "space" as SpaceId;
const MANY_TURNS = 50;

/** A device that knows contents by their roots, in this order, and a source that has those whose name begins with "good". */
function createWorld(lists: { wanted?: string[]; pinned?: string[]; all?: string[] }) {
  const cached = new Set<string>();
  let asked = 0;
  let changed = (): void => {};
  const rows = (roots: readonly string[] = []) => roots.map((root) => ({ root, size: 1 }) as FileContent);
  const page = (roots: readonly string[] | undefined) => (after: string, limit: number) =>
    rows(roots?.filter((root) => root > after).slice(0, limit));
  const own = {
    contentOfRoot: (root: string) => ({ rootCid: root }) as Content,
    isCached: ({ root }: { root: string }) => cached.has(root),
    table: {
      wanted: page(lists.wanted),
      pinnedContents: page(lists.pinned),
      contents: page(lists.all),
      isNamed: () => true,
    },
  } as unknown as FileContents;
  const contents = {
    sources: {
      anyFor: () => true,
      onChange(listener: () => void) {
        changed = listener;
        return () => {};
      },
    },
    async complete({ rootCid }: Content) {
      asked++;
      if (!rootCid.startsWith("good")) return false;
      cached.add(rootCid);
      return true;
    },
  } as unknown as ContentStore;
  const prefetch = createFilePrefetch({
    contents,
    log: silentLog,
    keepsAll: lists.all !== undefined,
    activeIds: () => [SPACE],
    use: (_spaceId, run) => run(own),
    onWork: () => () => {},
    showWork: () => ({ progress() {}, end() {} }),
  });
  return {
    /** Looks until nothing more is tried; answers what is here then, and how often somebody was asked. */
    async look(changes = 0) {
      await prefetch.start();
      for (let turn = 0; turn < MANY_TURNS; turn++) {
        if (turn < changes) changed();
        for (let before = -1; before !== asked; ) {
          before = asked;
          await loopTurns();
        }
      }
      await prefetch.stop();
      return { here: [...cached].sort(), asked };
    },
  };
}

const junk = (count: number): string[] => Array.from({ length: count }, (_, n) => `bad${String(n).padStart(3, "0")}`);

test("[FILE-3] contents that nobody has keep no other from being fetched, whoever asked for them", async () => {
  expect(await createWorld({ wanted: [...junk(5), "good1"] }).look()).toEqual({ here: ["good1"], asked: 6 });
  const pinned = await createWorld({ pinned: [...junk(5), "good1"], wanted: junk(5) }).look();
  expect(pinned).toEqual({ here: ["good1"], asked: 6 });
  const all = [...junk(20), "good1", "good2", "zzz"];
  const kept = await createWorld({ all, pinned: junk(4), wanted: junk(3) }).look();
  expect(kept).toEqual({ here: ["good1", "good2"], asked: 23 });
});

test("[FILE-3] of very many that nobody has only some are tried at a time, and all in their turn", async () => {
  const all = [...junk(150), "good1"];
  expect(await createWorld({ all }).look()).toEqual({ here: [], asked: 64 });
  expect((await createWorld({ all }).look(3)).here).toEqual(["good1"]);
});
