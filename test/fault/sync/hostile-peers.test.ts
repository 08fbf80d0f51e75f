/**
 * Peers on the LAN that break every rule, with the keys of a genuine member, against a running server that syncs with an
 * honest member's server meanwhile.
 */

import { afterAll, beforeAll, beforeEach, describe, expect } from "bun:test";
import { connect } from "node:net";
import { utf8ToBytes } from "../../../src/base/bytes.ts";
import { encodeCbor } from "../../../src/base/dag-cbor.ts";
import type { SpaceId } from "../../../src/base/ids.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { encodeDerivedRoot } from "../../../src/change/codec/change-codec.ts";
import { changeIdOf } from "../../../src/change/codec/change-stub.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { cidFromDigest } from "../../../src/crypto/cid.ts";
import { peerIdOf } from "../../../src/crypto/peer-id.ts";
import { publicKeyOfSeed } from "../../../src/crypto/private-key.ts";
import { createDeviceCertificate } from "../../../src/sync/lan/device-certificate.ts";
import { encodeFrame, FRAGMENT_BYTES, FRAME } from "../../../src/sync/lan/framing.ts";
import { dialPeer } from "../../../src/sync/lan/link-socket.ts";
import { CHANNEL_LIMITS } from "../../../src/sync/lan/message-channel.ts";
import { SYNC_BOUNDS } from "../../../src/sync/session/bounds.ts";
import { encodeItems, encodeSpaceName } from "../../../src/sync/session/messages.ts";
import { SYNC_KINDS } from "../../../src/sync/session/remote-replica.ts";
import { type Besieged, besiege } from "../../support/hostile/besieged.ts";
import { forgeEvent } from "../../support/hostile/forged-event.ts";
import { forgeChange, type HostilePeer, memoryOf, syncPortOf, warningsOf } from "../../support/hostile/hostile-peer.ts";
import { rule } from "../../support/rule.ts";
import { until } from "../../support/server/client.ts";
import type { Device } from "../../support/server/devices.ts";
import { type AclWorld, createAccount } from "../../support/worlds/acl-world.ts";

const LONG_MS = 240_000;
const WAIT_MS = 100_000;

describe("hostile peers on the LAN", () => {
  let besieged: Besieged;
  let server: Device;
  let honest: Device;
  let owner: Account;
  let writer: Account;
  let spaceId: SpaceId;
  let world: AclWorld;
  const offer: Besieged["offer"] = (frames) => besieged.offer(frames);
  const join: Besieged["join"] = (device) => besieged.join(device);
  const debug = () => besieged.debug();
  const honestSyncGoesOn = () => besieged.goesOn();

  beforeAll(async () => {
    besieged = await besiege();
    ({ server, honest, owner, writer, spaceId, world } = besieged);
  }, LONG_MS);
  beforeEach(() => besieged.partAll());
  afterAll(() => besieged?.[Symbol.asyncDispose](), 30_000);

  rule(
    "[SYNC-4] a frame over the limit, half a frame, an unknown type, endless fragments: the link ends, and nothing else",
    async () => {
      const notice = (payload: Uint8Array, more = false) => encodeFrame(FRAME.notice, 1, payload, more);
      const tooLong = new Uint8Array(9);
      new DataView(tooLong.buffer).setUint32(0, FRAGMENT_BYTES + 6);
      const breaches: Record<string, Uint8Array[]> = {
        "a length over the limit": [tooLong],
        "a length of nothing": [new Uint8Array(9)],
        "an unknown type": [encodeFrame(77, 1, new Uint8Array(1))],
        "a message without a kind": [notice(new Uint8Array(1))],
        "a kind that is too long": [notice(Uint8Array.of(200, ...new Uint8Array(200)))],
        "an empty fragment": [notice(new Uint8Array(0), true)],
        "a fragment that is not full": [notice(new Uint8Array(FRAGMENT_BYTES - 1), true)],
        "a message that never ends": Array.from({ length: 80 }, () => notice(new Uint8Array(FRAGMENT_BYTES), true)),
        "many messages that never end": Array.from({ length: CHANNEL_LIMITS.partialMessages + 1 }, (_, id) =>
          encodeFrame(FRAME.request, id, new Uint8Array(FRAGMENT_BYTES), true),
        ),
      };
      for (const [title, frames] of Object.entries(breaches)) {
        const peer = await join();
        for (const frame of frames) peer.socket.write(frame);
        await until(() => peer.link.signal.aborted, `the end after ${title}`, WAIT_MS);
      }
      const half = await join();
      half.socket.write(notice(new Uint8Array(1000)).subarray(0, 500));
      await honestSyncGoesOn();
      expect(half.link.signal.aborted).toBe(false);
    },
    LONG_MS,
  );

  rule(
    "[CHANGE-4] changes with every fault are judged alone: refused or kept aside, the genuine one between them taken, told once",
    async () => {
      const peer = await join();
      const root = forgeChange(world, writer);
      const author = writer.signer.publicKey;
      const next = (over: object, sealed = randomBytes(64), by = writer) =>
        forgeChange(
          world,
          by,
          {
            kind: "change",
            object: root.id,
            parents: [root.id],
            prev: root.id,
            seq: 2,
            writer: root.header.writer,
            lamport: root.header.lamport + 1,
            keyId: world.keysOf(owner).current()!.id,
            ...over,
          },
          sealed,
        );
      const other = forgeChange(world, writer);
      const spoilt = next({ time: 3 });
      const flipped = spoilt.bytes.slice();
      flipped[flipped.length - 1]! ^= 1;
      const refused = {
        "a lamport ahead": next({ lamport: root.header.lamport + 1000 }).bytes,
        "a lamport behind": next({ lamport: root.header.lamport }).bytes,
        "a root's lamport ahead": forgeChange(world, writer, { lamport: 2 ** 40 }).bytes,
        "another's signature": forgeChange(world, createAccount(), { author }).bytes,
        "a signature that was touched": flipped,
        "a body that does not open": next({ time: 4 }).bytes,
        "another space": forgeChange(world, writer, { space: randomBytes(32) }).bytes,
        "another object's parent": next({ parents: [other.id] }).bytes,
        "a broken chain": next({ writer: randomBytes(16) }).bytes,
        "a seq left out": next({ seq: 7 }).bytes,
        "bytes behind the end": new Uint8Array([...root.bytes, 0]),
        "no change at all": randomBytes(300),
        "too many bytes": randomBytes(600 << 10),
      };
      const waiting = {
        "an unknown parent": next({ parents: [randomBytes(32)] }).bytes,
        "an unknown predecessor": next({ prev: randomBytes(32) }).bytes,
        "an unknown ACL record": forgeChange(world, writer, { acl: randomBytes(32) }).bytes,
        "an unknown key": next({ keyId: randomBytes(16) }).bytes,
      };
      const before = await debug();
      const many = [...Object.values(refused), ...Object.values(waiting)];
      const lines = warningsOf(server, "refused").length;
      for (let round = 0; round < 3; round++)
        await peer.push(
          spaceId,
          offer([
            [root.bytes, other.bytes, ...many.slice(0, 6)],
            [...many.slice(6), root.bytes],
          ]),
        );
      const after = await debug();
      const known = new Set(after.quarantined.map(({ id }) => id));
      for (const [title, bytes] of Object.entries(refused))
        expect([title, known.has(cidFromDigest(changeIdOf(bytes)))]).toEqual([title, true]);
      expect(after.parked - before.parked).toBe(Object.keys(waiting).length);
      const objects = await server.server.client.get<{ treeLen: number }>(
        `/v1/spaces/${spaceId}/debug/objects/${cidFromDigest(root.id)}`,
      );
      // The root, and the change whose body does not open: it does nothing, but is in the graph as its stub would be.
      expect(objects.treeLen).toBe(2);
      expect(warningsOf(server, "refused").length).toBe(lines + 1);
      await honestSyncGoesOn();
      expect(peer.link.signal.aborted).toBe(false);
    },
    LONG_MS,
  );

  rule(
    "[SYNC-4] a peer that never answers, one that never ends and one that repeats itself hold up nobody else",
    async () => {
      const same = forgeChange(world, writer).bytes;
      const asked = (peer: HostilePeer, kind: string) => peer.asked.get(kind) ?? 0;
      for (const device of [server, honest]) {
        const [silent, endless, repeating] = [await join(device), await join(device), await join(device)];
        silent.answers.set(SYNC_KINDS.state, () => new Promise<never>(() => {}));
        const frames = (bytes: () => Uint8Array) => {
          let next = 0;
          return offer(() => ({ changes: [bytes()], next: ++next, withheld: 0, needIds: [] }));
        };
        endless.offers.set(
          spaceId,
          frames(() => randomBytes(200)),
        );
        repeating.offers.set(
          spaceId,
          frames(() => same),
        );
        for (const peer of [silent, endless, repeating])
          await peer.link.notify("sync.changed", encodeSpaceName(spaceId));
        await until(() => asked(silent, SYNC_KINDS.state) > 0, "the silent one to be asked", WAIT_MS);
        await until(
          () => asked(endless, SYNC_KINDS.pull) > 0 && asked(repeating, SYNC_KINDS.pull) > 0,
          "the others to be asked",
          WAIT_MS,
        );
      }
      for (let i = 0; i < 3; i++) await honestSyncGoesOn();
    },
    LONG_MS,
  );

  rule(
    "[SYNC-4] floods of malformed requests, notices, waiting changes, records and links: told once, memory bounded",
    async () => {
      const before = memoryOf(server);
      const lines = warningsOf(server).length;
      const peer = await join();
      const junk = (i: number) => {
        const kind = utf8ToBytes(i % 2 ? SYNC_KINDS.pull : "sync.changed");
        const body = Buffer.concat([Uint8Array.of(kind.length), kind, randomBytes(100)]);
        return encodeFrame(i % 2 ? FRAME.request : FRAME.notice, 1_000_000 + i, body);
      };
      const closed = new Promise((done) => peer.socket.once("close", done));
      for (let i = 0; i < 20_000; i++) {
        if (peer.socket.destroyed) break; // ended for what it sends, before all of it was sent
        if (peer.socket.write(junk(i))) continue;
        await Promise.race([new Promise((done) => peer.socket.once("drain", done)), closed]);
      }
      const root = forgeChange(world, writer);
      const waiting = (i: number) =>
        forgeChange(
          world,
          writer,
          { kind: "change", object: root.id, parents: [randomBytes(32)], keyId: randomBytes(16), time: i },
          randomBytes(64),
        ).bytes;
      const frames = Array.from({ length: 20 }, (_, frame) =>
        Array.from({ length: 500 }, (_, i) => waiting(frame * 500 + i)),
      );
      const flooder = await join();
      await Promise.all([flooder.push(spaceId, offer(frames)), honestSyncGoesOn()]);
      expect(flooder.asked.get(SYNC_KINDS.pull)).toBeGreaterThanOrEqual(frames.length);
      const port = await syncPortOf(server);
      const knocking = Array.from({ length: 300 }, async () => {
        const socket = connect(port, "127.0.0.1");
        socket.on("error", () => {});
        socket.write(randomBytes(2000));
        return socket;
      });
      const many = await Promise.all(Array.from({ length: 60 }, () => join()));
      for (const socket of await Promise.all(knocking)) socket.destroy();
      await until(
        () => many.some(({ link }) => link.signal.aborted),
        "too many links of one account to be ended",
        WAIT_MS,
      );
      await honestSyncGoesOn();
      expect(warningsOf(server).length - lines).toBeLessThan(10);
      expect(memoryOf(server)).toBeLessThan(before + (400 << 20));
    },
    LONG_MS,
  );

  rule(
    "[EVENT-1] events under ever other names of devices are counted by who signed; a name without a bound is none",
    async () => {
      const epoch = world.keysOf(owner).current()!;
      const peer = await join();
      const path = `/v1/events/subscribe?scope=space&spaceId=${spaceId}&type=test.*`;
      await using stream = await server.server.client.stream("GET", path);
      await stream.expect("ready");
      const say = (name: string, topic: string) => {
        const payload = forgeEvent(spaceId, epoch, writer, { topic, data: "1", peer: name });
        return peer.link.notify("event", encodeCbor({ space: spaceId, payload }).slice());
      };
      /** What was said before is taken in by then. */
      const isHandled = () => peer.aclLogOf(spaceId);
      const before = memoryOf(server);
      const startedMs = performance.now();
      for (let i = 0; i < 2_000; i++) {
        await say(peerIdOf(publicKeyOfSeed(randomBytes(32))), "ev/test/flood/-");
        if (i % 100 === 0) await isHandled();
      }
      for (let i = 0; i < 100; i++) {
        await say(`${i}`.padEnd(1_000_000, "x"), "ev/test/large/-");
        if (i % 3 === 0) await isHandled();
      }
      await until(
        async () => {
          const said = { type: "test.honest", scope: "space", spaceId };
          await honest.server.client.post("/v1/events", said);
          return stream.rawText().includes("test.honest");
        },
        "an honest member's event",
        WAIT_MS,
      );
      const heard = stream.rawText().split("test.flood").length - 1;
      const seconds = (performance.now() - startedMs) / 1_000;
      expect(heard).toBeGreaterThan(0);
      // One account is heard 120 times a second, and 240 times at once.
      expect(heard).toBeLessThanOrEqual(240 + 120 * seconds);
      expect(stream.rawText()).not.toContain("test.large");
      expect(memoryOf(server)).toBeLessThan(before + (200 << 20));
    },
    LONG_MS,
  );

  rule(
    "[CHANGE-3] derived roots, which nobody signs, of half a megabyte are refused, and what is kept of them has a bound",
    async () => {
      const peer = await join();
      const before = { disk: besieged.bytesOnDisk(), ...(await debug()) };
      const large = (i: number) =>
        encodeDerivedRoot({ space: world.state.space!, type: "x".repeat(520_000), derivation: `${i}` }).bytes;
      peer.offers.set(spaceId, offer(Array.from({ length: 80 }, (_, i) => [large(i)])));
      // What brings nothing else is taken so often, then now and then, and who goes on with it is told that it failed.
      const giveBack = () => peer.link.request(SYNC_KINDS.back, encodeSpaceName(spaceId)).catch(() => undefined);
      for (let round = 0; round < 6; round++) await giveBack();
      expect(peer.asked.get(SYNC_KINDS.pull)).toBeLessThan(2 * SYNC_BOUNDS.junkFrames);
      const { parked, quarantined } = await debug();
      expect(parked).toBeLessThanOrEqual(before.parked); // what waited before may be given up meanwhile
      expect(quarantined.some(({ code }) => code === "change.derived_too_long")).toBe(true);
      // They count against the 16 MiB of what is quarantined; as many again fit into the log that is not checkpointed yet.
      expect(besieged.bytesOnDisk() - before.disk).toBeLessThan(20 << 20);
      await honestSyncGoesOn();
    },
    LONG_MS,
  );

  rule(
    "[SYNC-6] connections that prove nothing and stay are 32 at most, and keep no member out",
    async () => {
      const port = await syncPortOf(server);
      const mute = await Promise.all(
        Array.from({ length: 60 }, () => dialPeer(createDeviceCertificate(randomBytes(32)), "127.0.0.1", port)),
      );
      for (const socket of mute) socket.resume();
      const open = () => mute.filter(({ destroyed }) => !destroyed).length;
      await until(() => open() <= 32, "all but 32 to be closed", WAIT_MS);
      const peer = await join();
      expect(peer.link.signal.aborted).toBe(false);
      await honestSyncGoesOn();
      for (const socket of mute) socket.destroy();
    },
    LONG_MS,
  );

  rule(
    "[SYNC-4] changes that are known already are fetched a bounded number of times, however often a peer asks for that",
    async () => {
      const peer = await join();
      const change = forgeChange(world, writer).bytes;
      await peer.push(spaceId, offer([[change]]));
      peer.asked.clear();
      peer.offers.set(
        spaceId,
        offer((cursor) => ({ changes: [change], next: cursor + 1, withheld: 0, needIds: [] })),
      );
      const ASKED = 4 * SYNC_BOUNDS.idleRequests;
      for (let asked = 0; asked < ASKED; asked++)
        await peer.link.request(SYNC_KINDS.back, encodeSpaceName(spaceId), { timeoutMs: WAIT_MS });
      // What the server's own rounds ask for comes on top.
      expect(peer.asked.get(SYNC_KINDS.pull)).toBeLessThan(2 * SYNC_BOUNDS.idleRequests * (SYNC_BOUNDS.idleFrames + 2));
      await honestSyncGoesOn();
    },
    LONG_MS,
  );

  rule(
    "[SYNC-4] ACL records without end: neither empty ones nor whole messages of them fill memory, and others go on",
    async () => {
      const before = memoryOf(server);
      const empty = encodeItems(Array.from({ length: 500 }, () => new Uint8Array(0)));
      // As many as go into a message of the size that a link takes.
      const crowded = encodeItems(Array.from({ length: 2_000_000 }, () => new Uint8Array(0)));
      for (const page of [empty, crowded]) {
        const peer = await join();
        peer.offers.set(spaceId, { ...offer(), state: { aclHead: randomBytes(32), aclCount: 1 << 20 } });
        peer.answers.set(SYNC_KINDS.acl, () => page);
        await until(() => (peer.asked.get(SYNC_KINDS.acl) ?? 0) > 0, "the request for rights", WAIT_MS);
        await honestSyncGoesOn();
        const asked = peer.asked.get(SYNC_KINDS.acl)!;
        // A round asks once and is refused; what others write has rounds follow, but none of them goes on asking.
        for (let more = 0; more < 3; more++) await honestSyncGoesOn();
        expect(peer.asked.get(SYNC_KINDS.acl)! - asked).toBeLessThan(20);
        await peer[Symbol.asyncDispose]();
      }
      expect(memoryOf(server) - before).toBeLessThan(200 << 20);
    },
    LONG_MS,
  );
});
