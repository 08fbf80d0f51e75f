import { expect, test } from "bun:test";
import { until } from "../../test/support/server/client.ts";
import { SPACES_RULES } from "../account/own-space/tech-datasets.ts";
import type { Profile, TechSpace } from "../account/own-space/tech-space.ts";
import type { Log } from "../base/log.ts";
import type { SpaceInfo } from "../protocol/space.ts";
import { createProfileNews } from "./profile-news.ts";

test("[SYNC-14] what is sent while a new one is being written down does not stand for it: the new one is sent after it", async () => {
  const notified: (string | undefined)[] = [];
  const notes = new Map<string, Uint8Array>();
  let profile: Profile = { name: "old" };
  let commit: (batch: unknown) => void = () => {};
  const engine = {
    note: (name: string) => notes.get(name),
    write: async (run: (tx: unknown) => void) =>
      run({
        putNote: (name: string, value: Uint8Array) => void notes.set(name, value),
        dropNote: (name: string) => void notes.delete(name),
      }),
  };
  const events = {
    on(_name: "committed", listener: (batch: unknown) => void) {
      commit = listener;
      return () => {};
    },
  };
  const tech = {
    space: { engine, events },
    async setProfile(next: Profile) {
      // The space's row is written to at this moment, which has its members told again.
      commit({ touched: [{ dataset: SPACES_RULES.name, recordId: "space" }] });
      await until(() => Promise.resolve(notified.length > 0), "the notifying");
      await Bun.sleep(0);
      profile = next;
    },
  };
  const news = createProfileNews({
    tech: tech as unknown as TechSpace,
    spaces: {
      list: () => [{ id: "space", status: "active" } as SpaceInfo],
      info: () => ({ status: "active" }) as SpaceInfo,
      open: async () => ({ members: { profileChanged: async () => void notified.push(profile.name) } }),
    },
    log: {} as Log,
  });
  await news.change({ name: "new" });
  await until(() => Promise.resolve(notified.at(-1) === "new"), "the new one to be told");
  await until(() => Promise.resolve(notes.size === 0), "nothing to be left");
  await news.stop();
  expect(notified.at(-1)).toBe("new");
});
