import { expect, test } from "bun:test";
import { join } from "node:path";
import { scratchDir } from "../../../test/support/scratch.ts";
import { createAccount } from "../../../test/support/worlds/acl-world.ts";
import { bytesToBase64 } from "../../base/bytes.ts";
import { systemClock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import { silentLog } from "../../base/log.ts";
import { createdSpaceGenesis } from "../../space/space.ts";
import { createSpaceCreation } from "./space-creation.ts";

test("[SPACE-6] a creation that fails is tried again until it succeeds, and none of those beside it waits", async () => {
  using dir = scratchDir("svc-creation");
  const account = createAccount();
  const seeds = Array.from({ length: 3 }, () => createdSpaceGenesis(account, systemClock));
  const payloadOf = ({ header, aclRoot }: (typeof seeds)[number]): Uint8Array => {
    const root = { id: bytesToBase64(aclRoot.id), bytes: bytesToBase64(aclRoot.bytes) };
    return Buffer.from(JSON.stringify({ header: bytesToBase64(header), aclRoot: root, metadata: {}, derived: false }));
  };
  const intents = new Map(seeds.map((seed) => [seed.spaceId, payloadOf(seed)]));
  const [, broken] = seeds.map(({ spaceId }) => spaceId) as [SpaceId, SpaceId, SpaceId];
  let isBroken = true;
  const tried: string[] = [];
  const creation = createSpaceCreation({
    account,
    store: {
      intents: () => [...intents].map(([spaceId, payload]) => ({ spaceId, payload })),
      dropIntent: (spaceId: SpaceId) => void intents.delete(spaceId),
    } as never,
    paths: { space: (spaceId: SpaceId) => join(dir.path, `${spaceId}.db`), syncDirectory: () => {} } as never,
    tech: { spaceRow: () => undefined } as never,
    roots: {} as never,
    spaces: {
      use: async (spaceId: SpaceId) => {
        tried.push(spaceId);
        if (spaceId === broken && isBroken) throw new Error("the disk does not answer");
      },
      remove: async () => {},
    } as never,
    log: silentLog,
    crashPoint: () => {},
  });
  const run = () => false;

  await creation.resume(run);
  expect(tried).toEqual(seeds.map(({ spaceId }) => spaceId));
  expect([creation.unfinished(), [...intents.keys()]]).toEqual([[broken], [broken]]);
  await creation.retry(run);
  expect(creation.unfinished()).toEqual([broken]);
  isBroken = false;
  await creation.retry(run);
  expect([creation.unfinished(), [...intents.keys()]]).toEqual([[], []]);
  await creation.retry(run);
  expect(tried.slice(3)).toEqual([broken, broken]);
});
