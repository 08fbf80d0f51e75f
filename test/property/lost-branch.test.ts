/**
 * Two of the owner's devices act apart, and a member writes under the branch that loses: what becomes of its write, with
 * rounds, sessions and statuses as they are, on links in memory and a virtual clock.
 */
import { describe, expect } from "bun:test";
import { randomBytes } from "../../src/base/random.ts";
import { createRng } from "../support/rng.ts";
import { rule } from "../support/rule.ts";
import { memoryDir, scratchDir } from "../support/scratch.ts";
import { useSeededRandomness } from "../support/seeded-randomness.ts";
import { digestOf, headOf } from "../support/worlds/acl-devices.ts";
import { createAccount } from "../support/worlds/acl-world.ts";
import { openSyncWorld, rowsOf, type SyncDevice, type SyncWorld } from "../support/worlds/sync-world.ts";

const MINUTE_MS = 60_000;
const TEXT = "under the branch that loses";

describe("a member's write under a branch of the ACL log that loses", () => {
  const beginFrom = useSeededRandomness();

  interface Apart {
    readonly world: SyncWorld;
    /** The owner's device that is alone, and the one whose branch loses. */
    readonly alone: SyncDevice;
    readonly members: readonly SyncDevice[];
    /** The one that is alone takes its turn: its branch wins, and the other's record can take no effect any more. */
    decide(): Promise<void>;
  }

  /**
   * One device of the owner is alone; the other lets somebody in, of whom the members hear; then it is gone for good, and the
   * first of the members, of whom nothing else counts, has written.
   */
  const withApart = async (seed: number, count: number, run: (apart: Apart) => Promise<void>): Promise<void> => {
    beginFrom(seed);
    using dir = scratchDir("svc-lost-branch", memoryDir());
    await using world = await openSyncWorld(dir.path, createRng(seed), { owners: 2, members: count });
    const [gone, alone, ...members] = world.devices as [SyncDevice, SyncDevice, ...SyncDevice[]];
    const [known, fresh] = [createAccount(randomBytes(32)), createAccount(randomBytes(32))];
    connectAll(world, world.devices);
    await gone.addMember(known);
    await untilSynced(world, world.devices, MINUTE_MS);
    for (const other of [gone, ...members]) world.links.cut(alone.peerId, other.peerId);
    await gone.addMember(fresh);
    await world.time.runFor(MINUTE_MS);
    for (const member of members) {
      expect(headOf(member)).toBe(headOf(gone));
      world.links.cut(gone.peerId, member.peerId);
    }
    await members[0]!.write("r", TEXT);
    await world.time.runFor(MINUTE_MS);
    const decide = async () => {
      await alone.removeMember(known); // who puts somebody out wins
      await alone.addMember(fresh);
      await alone.removeMember(fresh);
    };
    await run({ world, alone, members, decide });
  };

  rule("[ACL-11] is fetched by the owner's other device, which says `synced` once it has it", () =>
    withApart(1, 1, async ({ world, alone, members, decide }) => {
      await decide();
      // It hears of the branch that wins before anybody asks it for its write.
      await members[0]!.device.space.aclService.take(alone.device.aclLog());
      const untrue: string[] = [];
      world.onStatus((device, state) => {
        const isMet = world.links.isConnected(alone.peerId, members[0]!.peerId);
        if (state === "synced" && isMet && rowsOf(device).length === 0) untrue.push(device.peerId);
      });
      connectAll(world, [alone, ...members]);
      await untilSynced(world, [alone, ...members], 15 * MINUTE_MS);
      expect(rowsOf(alone)).toEqual([expect.stringContaining(TEXT)]);
      expect(untrue).toEqual([]);
      connectAll(world, world.devices);
      await untilSynced(world, world.devices, 15 * MINUTE_MS);
    }),
  );

  rule("[SYNC-2] is waited for by nobody when the branch that wins puts its author out", () =>
    withApart(2, 2, async ({ world, alone, members, decide }) => {
      const [author, other] = members as [SyncDevice, SyncDevice];
      expect(rowsOf(other)).toEqual([expect.stringContaining(TEXT)]);
      await alone.removeMember(author.device.account);
      await decide();
      await other.device.space.aclService.take(alone.device.aclLog());
      connectAll(world, [alone, other]);
      await untilSynced(world, [alone, other], 15 * MINUTE_MS);
      expect([rowsOf(alone), rowsOf(other)]).toEqual([[], []]);
    }),
  );
});

function connectAll({ links }: SyncWorld, devices: readonly SyncDevice[]): void {
  for (const one of devices) for (const other of devices) if (one !== other) links.connect(one.peerId, other.peerId);
}

/** Until these say that they are synced and have the same. */
async function untilSynced({ time }: SyncWorld, devices: readonly SyncDevice[], limitMs: number): Promise<void> {
  const endMs = time.elapsedMs() + limitMs;
  for (;;) {
    await time.runFor(1_000);
    const synced = await Promise.all(devices.map((device) => device.isSynced()));
    const heads = new Set(devices.map((device) => `${headOf(device)} ${digestOf(device)}`));
    if (synced.every(Boolean) && heads.size === 1) return;
    if (time.elapsedMs() > endMs) throw new Error(`not synced after ${limitMs / 1_000} s: ${synced} ${[...heads]}`);
  }
}
