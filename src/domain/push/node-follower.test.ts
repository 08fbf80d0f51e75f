import { expect, test } from "bun:test";
import type { AccountId } from "../../base/ids.ts";
import { silentLog } from "../../base/log.ts";
import { PUSH_BOUNDS, PUSH_PATHS } from "../../protocol/push-node.ts";
import { createNodeFollower } from "./node-follower.ts";

/** A follower that lists what a node holds, of which `page` is every page. How many pages it asked for. */
async function pagesAskedOf(page: { topics: object[]; more: boolean }): Promise<number> {
  let asked = 0;
  const answers: Record<string, object> = {
    [PUSH_PATHS.devices]: { devices: [{ device: "d", platform: "ios" }] },
    [PUSH_PATHS.topicsList]: page,
  };
  const follower = createNodeFollower({
    calls: {
      audience: "http://node",
      onOtherState: () => {},
      post: async (path: string) => {
        if (path === PUSH_PATHS.topicsList) asked++;
        return answers[path] as never;
      },
    },
    accountId: "A" as AccountId,
    tokenFile: { read: async () => ({ kind: "none" }) } as never,
    plan: { plan: async () => [] },
    store: { pruned: () => [], dropPruned: () => {}, noteKeys: () => {}, isKnownKey: () => false } as never,
    isPruned: () => false,
    tagOf: () => "d",
    ownTag: "d",
    clock: { nowMs: () => 0 },
    log: silentLog,
  });
  await follower.start();
  await follower.stop(); // once what runs has ended
  return asked;
}

test("a node that lists topics without end is not followed without end", async () => {
  const full = Array.from({ length: PUSH_BOUNDS.requestTopics }, (_, i) => ({ spaceKey: "k", topic: `${i}` }));
  expect(await pagesAskedOf({ topics: full, more: true })).toBe(PUSH_BOUNDS.listedTopics / PUSH_BOUNDS.requestTopics);
  expect(await pagesAskedOf({ topics: full.slice(1), more: true })).toBe(1);
});
