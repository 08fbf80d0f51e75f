/**
 * Somebody with valid credentials of the network and a token of the space, who puts whatever it likes into the space's
 * logs, while its members' servers go on.
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { cancelRequest, joinByInvite } from "../../../src/acl/compose/actions.ts";
import type { AclContext } from "../../../src/acl/compose/compose.ts";
import { encodeAclRecord } from "../../../src/acl/record/record.ts";
import { utf8ToBytes } from "../../../src/base/bytes.ts";
import type { SpaceId } from "../../../src/base/ids.ts";
import { randomBytes } from "../../../src/base/random.ts";
import type { ChangeHeader } from "../../../src/change/codec/change-codec.ts";
import { stubOf } from "../../../src/change/codec/change-stub.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { seal } from "../../../src/crypto/seal.ts";
import { LIMITS } from "../../../src/protocol/limits.ts";
import { type ChannelKeys, eventSubject, logSubject } from "../../../src/sync/network/subjects.ts";
import { boundsOf } from "../../support/hostile/attack-bounds.ts";
import { type AttackedNetwork, openAttackedNetwork } from "../../support/hostile/attacked-network.ts";
import { processorMsOf, spaceBytesOf } from "../../support/hostile/besieged.ts";
import { forgeEvent } from "../../support/hostile/forged-event.ts";
import { forgeChange, memoryOf, warningsOf } from "../../support/hostile/hostile-peer.ts";
import { describeWithNats } from "../../support/network/nats.ts";
import { rule } from "../../support/rule.ts";
import { until } from "../../support/server/client.ts";
import { type Device, setName, untilSynced } from "../../support/server/devices.ts";
import { ACL_MATRIX, ACL_ROLES, type AclCast } from "../../support/worlds/acl-matrix.ts";
import { createAccount } from "../../support/worlds/acl-world.ts";

const LONG_MS = 240_000;
const WAIT_MS = 100_000;
/** Rounds must pass, each of which reads all that waits, before it waits in vain. */
const IN_VAIN_MS = 100_000;
const PUT_AT_ONCE = 100;

/** Puts what is made one after the other, in that order, without waiting for each to be stored. */
async function inBursts(count: number, put: () => Promise<unknown>[]): Promise<void> {
  for (let from = 0; from < count; from += PUT_AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(PUT_AT_ONCE, count - from) }, put).flat());
}

describeWithNats("hostile messages on the network", () => {
  let attacked: AttackedNetwork;
  let server: Device;
  let honest: Device;
  let owner: Account;
  let removed: Account;
  let spaceId: SpaceId;
  let objectId: string;
  let cast: AclCast;
  let keys: ChannelKeys;

  beforeAll(async () => {
    attacked = await openAttackedNetwork(WAIT_MS);
    ({ server, honest, owner, removed, spaceId, objectId, cast, keys } = attacked);
    await attacked.honestSyncGoesOn();
  }, LONG_MS);
  afterAll(() => attacked?.[Symbol.asyncDispose](), 30_000);

  rule(
    "[ACL-2] a forged record of every cell, appended to the log, moves nothing; the next genuine one is behind them all",
    async () => {
      const { world, actors } = cast;
      const before = await attacked.rosterOf(server);
      let put = 0;
      for (const row of ACL_MATRIX) {
        if (row.title === "make a guest key") continue; // there is one: nobody could
        for (const role of [...ACL_ROLES, "removed" as const]) {
          if (role !== "removed" && row.allowed.includes(role)) continue;
          const everybody = role === "removed" ? { ...cast, actors: { ...actors, stranger: removed } } : cast;
          const ops = row.ops(everybody, role === "removed" ? "stranger" : role);
          const signer = (role === "removed" ? removed : actors[role]).signer;
          const fields = {
            space: world.state.space!,
            prev: world.state.head!,
            time: 1,
            clock: world.state.clocks.at(-1)!,
          };
          await attacked.putRecord(
            encodeAclRecord({ ...fields, ops: row.bare ? ops : world.completed(ops) }, signer).bytes,
          );
          put++;
        }
      }
      expect(put).toBeGreaterThan(100);
      const identity = createAccount().id;
      await server.server.client.post(
        `/v1/spaces/${spaceId}/acl/add`,
        { accounts: [{ identity, permission: "reader" }] },
        204,
      );
      const roster = await attacked.rosterOf(server);
      expect(roster.members.filter((member) => member.identity !== identity)).toEqual(before.members);
      expect(roster.members).toHaveLength(before.members.length + 1);
      await until(
        async () => (await attacked.rosterOf(honest)).members.length === roster.members.length,
        "the roster",
        WAIT_MS,
      );
      expect((await attacked.rosterOf(honest)).members.map(({ permission, status }) => [permission, status])).toEqual(
        roster.members.map(({ permission, status }) => [permission, status]),
      );
      for (const device of [server, honest]) expect(warningsOf(device, "refused")).toHaveLength(1);
      await attacked.honestSyncGoesOn();
      cast = { ...cast, world: await attacked.worldNow() };
    },
    LONG_MS,
  );

  rule(
    "[SYNC-4] garbage, forged changes and more of a stranger's than there is room for are skipped; members go on",
    async () => {
      const { world } = cast;
      const before = memoryOf(server);
      await inBursts(500, () => [
        attacked.js.publish(logSubject(keys, "c"), randomBytes(500)),
        attacked.js.publish(logSubject(keys, "a"), randomBytes(500)),
      ]);
      for (let i = 0; i < 10; i++) await attacked.putChanges(Array.from({ length: 1000 }, () => randomBytes(5)));
      for (let i = 0; i < 20; i++) await attacked.putRecord(randomBytes(1000));
      const author = cast.actors.writer;
      const bad = [
        forgeChange(world, author, { lamport: 2 ** 40 }),
        forgeChange(world, createAccount(), { author: author.signer.publicKey }),
        forgeChange(world, author, { space: randomBytes(32) }),
      ].map(({ bytes }) => bytes);
      const genuine = forgeChange(world, author).bytes;
      for (let i = 0; i < 20; i++) await attacked.putChanges([...bad, genuine, ...bad]);
      await attacked.honestSyncGoesOn();
      const bytesBefore = [server, honest].map((device) => spaceBytesOf(device, spaceId));
      // 12 MB of changes that wait for what never comes, each by somebody else: there is room for 8 MiB of them.
      for (let i = 0; i < 60; i++) {
        const stranger = createAccount();
        const parents = [randomBytes(32)];
        const over = { kind: "change" as const, object: randomBytes(32), parents, keyId: randomBytes(16) };
        await attacked.putChanges([forgeChange(world, stranger, over, randomBytes(200 << 10)).bytes]);
      }
      await attacked.honestSyncGoesOn();
      for (const [at, device] of [server, honest].entries()) {
        const kept = spaceBytesOf(device, spaceId) - bytesBefore[at]!;
        expect(kept).toBeGreaterThan(4 << 20);
        expect(kept).toBeLessThan(10 << 20);
        const path = `/v1/spaces/${spaceId}/sync-status`;
        await until(
          async () => (await device.server.client.get<{ state: string }>(path)).state === "synced",
          "synced: what strangers left there is nobody's",
          WAIT_MS,
        );
        expect(warningsOf(device).length).toBeLessThan(10);
      }
      expect(memoryOf(server)).toBeLessThan(before + (400 << 20));
    },
    LONG_MS,
  );

  rule(
    "[CHANGE-7] a member's stubs of changes that nobody has, and bodies too large, are not sent on and hold up nobody",
    async () => {
      const { world } = cast;
      const author = cast.actors.writer;
      const root = forgeChange(world, author);
      const child = (over: Partial<ChangeHeader> = {}, bodyBytes = 50) => {
        const behind = { kind: "change" as const, object: root.id, parents: [root.id], keyId: randomBytes(16) };
        const lamport = root.header.lamport + 1;
        return forgeChange(world, author, { ...behind, lamport, ...over }, randomBytes(bodyBytes));
      };
      await attacked.putChanges([root.bytes]);
      for (let i = 0; i < 3; i++) await attacked.putChanges(Array.from({ length: 500 }, () => stubOf(child().bytes)));
      const tooLarge = child({}, LIMITS.sealedChangeBytes + 50_000).bytes;
      await attacked.putChanges([stubOf(tooLarge)]);
      await attacked.putChanges([tooLarge]);
      await attacked.honestSyncGoesOn();
      const manager = await jetstreamManager(attacked.connection);
      const subject = logSubject(keys, "c");
      const messages = async (): Promise<number> => {
        const info = await manager.streams.info(keys.stream, { subjects_filter: subject });
        return info.state.subjects![subject]!;
      };
      const before = await messages();
      // What nobody can read back whole is nobody's to publish. What somebody else wrote after it and told one device alone
      // is published by that one, once it has given others time: so the time is over for all that came before.
      const pushed = forgeChange(world, author);
      await attacked.pushToServer([pushed.bytes]);
      await attacked.honestSyncGoesOn();
      const editsOfBoth = 2;
      await until(
        async () => (await messages()) > before + editsOfBoth,
        "the change that one device alone has to be published",
        WAIT_MS,
      );
      expect(await messages()).toBe(before + editsOfBoth + 1);
      await attacked.honestSyncGoesOn();
      for (const device of [server, honest]) {
        const debug = await device.server.client.get<{ quarantined: { code: string }[] }>(
          `/v1/spaces/${spaceId}/debug`,
        );
        const lost = debug.quarantined.filter(({ code }) => code === "change.body_missing");
        expect(lost.length).toBeGreaterThan(0);
        await until(
          async () =>
            (await device.server.client.get<{ state: string }>(`/v1/spaces/${spaceId}/sync-status`)).state === "synced",
          "synced: what nobody has is missed no more",
          WAIT_MS,
        );
      }
    },
    LONG_MS,
  );

  rule(
    "[CHANGE-5] a member who uses up its quota of waiting changes holds up nobody else",
    async () => {
      const { world } = cast;
      const author = cast.actors.writer;
      const over = { kind: "change", object: randomBytes(32), keyId: randomBytes(16) } as const;
      const waiting = () => forgeChange(world, author, { ...over, parents: [randomBytes(32)] }, randomBytes(500 << 10));
      for (let i = 0; i < 140; i++) await attacked.putChanges([waiting().bytes]);
      await attacked.honestSyncGoesOn();
      // What waits in vain is told of, keeps nobody from being synced, and costs nothing while it lies there.
      for (const device of [server, honest]) {
        const path = `/v1/spaces/${spaceId}/debug`;
        await until(
          async () => (await device.server.client.get<{ quarantined: unknown[] }>(path)).quarantined.length > 0,
          "what waits in vain to be told",
          IN_VAIN_MS,
        );
        await untilSynced(device, spaceId, IN_VAIN_MS);
      }
    },
    3 * IN_VAIN_MS,
  );

  rule(
    "[CHANGE-6] tens of megabytes by a removed member, by guests, revoked or not, and by who only knocked, stubs first, stay within the quota of what does not count",
    async () => {
      const { world, actors } = cast;
      const before = [server, honest].map((device) => spaceBytesOf(device, spaceId));
      for (const author of [removed, actors.guest, attacked.formerGuest, cast.asker]) {
        const keyId = world.keysOf(author).current()?.id ?? randomBytes(16);
        const root = forgeChange(world, author);
        await attacked.putChanges([root.bytes]);
        const child = () => {
          const over = { kind: "change" as const, object: root.id, parents: [root.id], keyId };
          return forgeChange(world, author, { ...over, lamport: root.header.lamport + 1 }, randomBytes(32_000)).bytes;
        };
        const children = Array.from({ length: 850 }, child);
        for (let at = 0; at < children.length; at += 500)
          await attacked.putChanges(children.slice(at, at + 500).map(stubOf));
        for (let at = 0; at < children.length; at += 20) await attacked.putChanges(children.slice(at, at + 20));
      }
      await attacked.honestSyncGoesOn();
      for (const [index, device] of [server, honest].entries()) {
        // What does not count, what strangers wait for, what is quarantined: their quotas, and their rows.
        expect(spaceBytesOf(device, spaceId) - before[index]!).toBeLessThan(
          boundsOf("a removed member or a guest").diskMiB << 20,
        );
        await untilSynced(device, spaceId, WAIT_MS);
      }
    },
    LONG_MS,
  );

  rule(
    "[CHANGE-6] a stranger's change under a key that nobody has, upon what is there, is missed by nobody",
    async () => {
      const { world } = cast;
      const root = forgeChange(world, cast.actors.writer);
      const over = { kind: "change" as const, object: root.id, parents: [root.id], keyId: randomBytes(16) };
      const stranger = createAccount();
      const { bytes } = forgeChange(world, stranger, { ...over, lamport: root.header.lamport + 1 }, randomBytes(40));
      expect(bytes.length).toBeLessThan(600);
      await attacked.putChanges([root.bytes, bytes, stubOf(bytes)]);
      await attacked.honestSyncGoesOn();
      for (const device of [server, honest]) await untilSynced(device, spaceId, WAIT_MS);
    },
    LONG_MS,
  );

  rule(
    "[SYNC-5] ten thousand roots by as many strangers make no local write dearer, and no vector longer",
    async () => {
      const { world } = cast;
      /** Processor time of twenty writes. */
      const cost = async (): Promise<number> => {
        const before = processorMsOf(server);
        for (let i = 0; i < 20; i++) await setName(server, spaceId, objectId, `cost ${i}`);
        return processorMsOf(server) - before;
      };
      await cost();
      const [plain, pushed] = [await cost(), await attacked.writersShown()];
      for (let page = 0; page < 20; page++)
        await attacked.putChanges(Array.from({ length: 500 }, () => forgeChange(world, createAccount()).bytes));
      await attacked.honestSyncGoesOn();
      for (const device of [server, honest]) await untilSynced(device, spaceId, WAIT_MS);
      expect(await attacked.writersShown()).toBeLessThan(pushed + 10);
      // It was 0.7 s a write where each counted the writers anew.
      expect(await cost()).toBeLessThan(plain + 2_000);
    },
    LONG_MS,
  );

  rule(
    "[ACL-5] who holds a token asks and takes back thousands of times: the log takes its bound of them, and the owner acts on",
    async () => {
      const world = await attacked.worldNow();
      const knocker = createAccount();
      const { strangersRecords } = world.state;
      const room = 1024 - strangersRecords;
      const asking = (context: AclContext) => joinByInvite(context, cast.inviteSeed, undefined);
      await inBursts(room >> 1, () =>
        [asking, cancelRequest].map((build) => attacked.putRecord(world.act(knocker, build).bytes)),
      );
      let prev = world.state.head!;
      const { space, clocks } = world.state;
      const ops = asking(world.contextOf(knocker));
      await inBursts(2_000, () => {
        const fields = { space: space!, prev, time: 1, clock: clocks.at(-1)! };
        const record = encodeAclRecord({ ...fields, ops }, knocker.signer);
        prev = record.id;
        return [attacked.putRecord(record.bytes)];
      });
      const identity = createAccount().id;
      const accounts = [{ identity, permission: "reader" }];
      await server.server.client.post(`/v1/spaces/${spaceId}/acl/add`, { accounts }, 204);
      for (const device of [server, honest])
        await until(
          async () => (await attacked.rosterOf(device)).members.some((member) => member.identity === identity),
          "the one who was added",
          WAIT_MS,
        );
      expect((await attacked.worldNow()).records.length).toBeLessThan(world.records.length + 10);
      await attacked.honestSyncGoesOn();
    },
    LONG_MS,
  );

  rule(
    "[EVENT-1] an event whose data nest deeper than a request may is dropped; the next one is heard",
    async () => {
      const { actors, world } = cast;
      const epoch = world.keysOf(owner).current()!;
      const subject = eventSubject(keys, "ev/test/deep/-");
      const say = (data: string) => {
        const event = forgeEvent(spaceId, epoch, actors.writer, { topic: "ev/test/deep/-", data });
        attacked.connection.publish(subject, seal(keys.sealKey, event, utf8ToBytes(subject)));
      };
      await using stream = await honest.server.client.stream(
        "GET",
        `/v1/events/subscribe?scope=space&spaceId=${spaceId}&type=test.*`,
      );
      await until(
        async () => {
          for (const depth of [129, 25_000, 50_000]) say(`${"[".repeat(depth)}${"]".repeat(depth)}`);
          say('"heard"');
          return stream.rawText().includes("heard");
        },
        "the event behind them",
        WAIT_MS,
      );
      expect(stream.rawText()).not.toContain("[[");
      await attacked.honestSyncGoesOn();
    },
    LONG_MS,
  );
});
