/** A space's places on a network in memory and a virtual clock: branches that lost, stores that lost, places that are flooded. */
import { describe, expect } from "bun:test";
import { utf8ToBytes } from "../../src/base/bytes.ts";
import { randomBytes } from "../../src/base/random.ts";
import { seal } from "../../src/crypto/seal.ts";
import { deriveChannelKeys, LOG_SHARDS, logSubject } from "../../src/sync/network/subjects.ts";
import { createRng } from "../support/rng.ts";
import { rule } from "../support/rule.ts";
import { memoryDir, scratchDir } from "../support/scratch.ts";
import { useSeededRandomness } from "../support/seeded-randomness.ts";
import { headOf, roleOf } from "../support/worlds/acl-devices.ts";
import { createAccount } from "../support/worlds/acl-world.ts";
import { faultsOnNetwork } from "../support/worlds/rotations.ts";
import { openSyncWorld, type SyncDevice, type SyncWorld } from "../support/worlds/sync-world.ts";

const LONG_AFTER_MS = 15 * 60_000;

const placesOf = ({ device }: SyncDevice) =>
  device.space.replica.places().map(({ secret }) => deriveChannelKeys(secret!));

async function rotate(device: SyncDevice): Promise<void> {
  const account = createAccount(randomBytes(32));
  expect(await device.addMember(account)).toBe(true);
  expect(await device.removeMember(account)).toBe(true);
}

/** All who are members have one log, and the network has it. */
async function expectOne({ time, devices, network }: SyncWorld): Promise<void> {
  await time.runFor(LONG_AFTER_MS);
  for (const device of devices) {
    expect(headOf(device)).toBe(headOf(devices[0]!));
    expect(await device.isSynced()).toBe(true);
  }
  expect(faultsOnNetwork(network.messages, devices[0]!.device.space)).toEqual([]);
}

describe("places on a network in memory", () => {
  const beginFrom = useSeededRandomness();
  const inWorld = async (members: number, run: (world: SyncWorld) => Promise<void>): Promise<void> => {
    beginFrom(1);
    using dir = scratchDir("svc-network-places", memoryDir());
    await using world = await openSyncWorld(dir.path, createRng(1), { owners: 2, members, onNetwork: true });
    for (const device of world.devices) device.client!.connect(true);
    await world.time.runFor(60_000);
    await run(world);
  };

  rule("[ACL-7] two branches of two rotations each, made apart and published by turns, end as one log", async () => {
    for (const goesFirst of [0, 1])
      await inWorld(1, async (world) => {
        const [one, other] = world.devices as [SyncDevice, SyncDevice];
        for (const device of [one, other]) device.client!.connect(false);
        for (const device of [one, other]) for (let count = 0; count < 2; count++) await rotate(device);
        const [first, second] = goesFirst === 0 ? [one, other] : [other, one];
        first.client!.connect(true);
        await world.time.runFor(60_000);
        await rotate(first); // it has gone on before the other is heard of
        second.client!.connect(true);
        await expectOne(world);
      });
  });

  rule("[ACL-7] [ACL-8] who is let in by an owner's device that is cut off, while another rotates, finds its way", () =>
    inWorld(1, async (world) => {
      const [one, other, member] = world.devices as [SyncDevice, SyncDevice, SyncDevice];
      expect(await one.removeMember(member.device.account)).toBe(true);
      await world.time.runFor(60_000);
      expect(member.device.space.replica.role()).toBe("none");
      other.client!.connect(false);
      expect(await other.addMember(member.device.account)).toBe(true);
      await rotate(one);
      await rotate(one);
      other.client!.connect(true);
      await expectOne(world);
      expect(member.device.space.replica.role()).toBe("writer");
    }),
  );

  rule("[ACL-8] who is let in by a device that is killed over it, whenever that is, is told once it is back", () =>
    inWorld(1, async (world) => {
      const [one, other, member] = world.devices as [SyncDevice, SyncDevice, SyncDevice];
      const { account } = member.device;
      const outcomes = new Set<string>();
      for (const isPassed of [false, true])
        for (let at = 1; at <= 4; at++) {
          expect(await other.removeMember(account)).toBe(true);
          await world.time.runFor(60_000);
          expect(member.device.space.replica.role()).toBe("none");
          one.killAt(at, isPassed);
          const added = await one.addMember(account);
          await world.time.runFor(60_000);
          if (one.isKilled()) await one.restart();
          await world.time.runFor(120_000);
          const isIn = roleOf(other.device, account) === "writer";
          outcomes.add(`${added ? "answered" : "unanswered"}, ${isIn ? "in" : "out"}`);
          expect(member.device.space.replica.role()).toBe(isIn ? "writer" : "none");
          // What another record stands in place of came to nothing.
          if (!isIn) await other.addMember(account);
          await expectOne(world);
          expect(one.device.space.store.unnotified.all()).toEqual([]);
        }
      expect(outcomes).toContain("unanswered, in");
      expect(outcomes).toContain("unanswered, out");
    }),
  );

  rule(
    "[ACL-7] [SYNC-7] a place of an older epoch that the store lost alone is filled again once somebody connects",
    () =>
      inWorld(1, async (world) => {
        const [one] = world.devices as [SyncDevice];
        await one.write("old", "of the first epoch");
        await world.time.runFor(60_000);
        do {
          await rotate(one);
          await world.time.runFor(60_000);
        } while (placesOf(one).at(-1)!.stream === placesOf(one)[0]!.stream);
        const { stream } = placesOf(one)[0]!;
        world.network.lose(stream);
        expect(faultsOnNetwork(world.network.messages, one.device.space)).not.toEqual([]);
        one.client!.connect(false);
        one.client!.connect(true);
        await expectOne(world);
      }),
  );

  rule("[ACL-6] [SYNC-4] of what fills a place behind its end, whoever comes by later reads a bounded part", () =>
    inWorld(1, async (world) => {
      const [one, , member] = world.devices as [SyncDevice, SyncDevice, SyncDevice];
      member.client!.connect(false);
      await rotate(one);
      await one.write("new", "of the second epoch");
      await world.time.runFor(60_000);
      const [old] = placesOf(one);
      const subject = logSubject(old!, "a");
      const junk = randomBytes(256 << 10);
      for (let count = 0; count < 128; count++) {
        const isSealed = count % 2 === 0;
        world.network.append(subject, isSealed ? seal(old!.sealKey, junk, utf8ToBytes(subject)) : junk);
        world.network.append(logSubject(old!, "c"), junk);
      }
      const before = member.client!.bytesRead();
      member.client!.connect(true);
      await expectOne(world);
      expect(member.client!.bytesRead() - before).toBeLessThan(12 << 20);
    }),
  );

  rule(
    "[ACL-7] what rests asks in its hundredth epoch what it asked in its first, and one question a stream more when it connects",
    () =>
      inWorld(0, async (world) => {
        const [one, other] = world.devices as [SyncDevice, SyncDevice];
        other.client!.connect(false);
        /** Of an hour in which nothing happens, and of connecting anew. */
        const costs = async () => {
          await world.time.runFor(LONG_AFTER_MS);
          const { client } = one;
          const [questions, bytes] = [client!.questions(), client!.bytesRead()];
          await world.time.runFor(60 * 60_000);
          const resting = { questions: client!.questions() - questions, bytes: client!.bytesRead() - bytes };
          client!.connect(false);
          client!.connect(true);
          await world.time.runFor(60_000);
          return { resting, connecting: client!.questions() - questions - resting.questions };
        };
        const first = await costs();
        for (let count = 0; count < 99; count++) await rotate(one);
        const hundredth = await costs();
        expect(placesOf(one)).toHaveLength(100);
        expect(first.resting.questions).toBeGreaterThan(100);
        expect(hundredth.resting.questions).toBeLessThanOrEqual(first.resting.questions);
        expect(hundredth.resting.bytes).toBeLessThanOrEqual(first.resting.bytes);
        expect(hundredth.connecting).toBeLessThanOrEqual(first.connecting + LOG_SHARDS);
        console.log(`an hour at rest: ${JSON.stringify({ first, hundredth })}`);
      }),
    60_000,
  );

  rule("[SYNC-3] a place is left, and a space closed, while a message is on its way there", () =>
    inWorld(0, async (world) => {
      const [one, other] = world.devices as [SyncDevice, SyncDevice];
      world.network.delayMs = 400;
      for (let round = 0; round < 10; round++) {
        for (const device of [one, other]) await device.write(`r${round}`, device.peerId);
        await world.time.runFor(round * 100);
        await one.restart();
      }
      await expectOne(world);
    }),
  );
});
