import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { loopTurns } from "../../../test/support/loop-turns.ts";
import { scratchDir } from "../../../test/support/scratch.ts";
import { createDevices, knownRules } from "../../../test/support/worlds/acl-devices.ts";
import { aclLogOf, createAclWorld, stateText } from "../../../test/support/worlds/acl-world.ts";
import { systemClock } from "../../base/clock.ts";
import { openSpaceInSlices } from "../../space/space.ts";

const RECORDS = 6_000;

/** How many turns of the loop something took, and the processor time of the longest and of all, in ms. */
async function turnsOf<T>(run: () => Promise<T>): Promise<{ result: T; turns: number; longest: number; all: number }> {
  let [turns, longest, all] = [0, 0, 0];
  let isOver = false;
  const running = run().finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const begun = process.cpuUsage();
    await loopTurns();
    const { user, system } = process.cpuUsage(begun);
    turns++;
    longest = Math.max(longest, (user + system) / 1000);
    all += (user + system) / 1000;
  }
  return { result: await running, turns, longest, all };
}

test("[STORE-3] a long ACL log whose snapshot was damaged is judged in turns of bounded work as its space is opened", async () => {
  using dir = scratchDir("svc-acl");
  await using devices = createDevices(dir.path);
  const one = devices.open("one", devices.owner);
  const world = createAclWorld(devices);
  const { keyId } = world.state.epochs[0]!.epoch;
  for (let i = 0; i < RECORDS; i++)
    world.forge(world.owner.signer, [{ op: "profile", metadata: { keyId, box: new Uint8Array(40).fill(i) } }]);
  await one.space.aclService.take(aclLogOf(world));
  const path = join(dir.path, "copy.db");
  await one.reopen(() => copyFileSync(join(dir.path, "one.db"), path));
  const opening = () =>
    openSpaceInSlices(path, devices.genesis.spaceId, {
      account: devices.owner,
      clock: systemClock,
      registry: knownRules,
    });
  {
    using db = new Database(path);
    db.run("UPDATE meta SET value = CAST(x'a5a5a5a5' || substr(value, 5) AS BLOB) WHERE key = 'acl-snapshot'");
  }
  const judged = await turnsOf(opening);
  expect(stateText(judged.result.acl.state)).toBe(stateText(world.state));
  expect(judged.result.acl.isSnapshotDue()).toBe(false);
  await judged.result.close();
  // Judging is most of the work, and no turn has more of it than what every opening does at once.
  expect(judged.turns).toBeGreaterThan(10);
  expect(judged.longest).toBeLessThan(judged.all / 2);
}, 120_000);
