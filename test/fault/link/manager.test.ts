import { describe, expect, test } from "bun:test";
import { connect as dialTcp } from "node:net";
import { connect as dialTls, type TLSSocket } from "node:tls";
import createMdns from "multicast-dns";
import { utf8ToBytes } from "../../../src/base/bytes.ts";
import { silentLog } from "../../../src/base/log.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { accountIdOf } from "../../../src/crypto/account-id.ts";
import { createSigner } from "../../../src/crypto/sign.ts";
import { createDeviceCertificate } from "../../../src/sync/lan/device-certificate.ts";
import { createFrameReader, encodeFrame, FRAME, HANDSHAKE_BYTES_MAX } from "../../../src/sync/lan/framing.ts";
import { dialPeer, listenForPeers } from "../../../src/sync/lan/link-socket.ts";
import type { PeerLink } from "../../../src/sync/lan/peer-link.ts";
import { meetServer } from "../../support/hostile/hostile-peer.ts";
import {
  type LinkPeer,
  linked,
  linkOf,
  sharedSpace,
  spaceNamed,
  useLinkPeers,
} from "../../support/network/link-peers.ts";
import { startTcpProxy } from "../../support/network/tcp-proxy.ts";
import { makeTestCa } from "../../support/network/test-ca.ts";
import { until } from "../../support/server/client.ts";
import { createAccount } from "../../support/worlds/acl-world.ts";

describe("LAN link on loopback", () => {
  const { keep, join, mdnsPort } = useLinkPeers();

  test("[SYNC-6] of 1,500 shared spaces with six keys each all are recognised, also those that come later", async () => {
    const several = (name: string) =>
      Array.from({ length: 6 }, () => ({ spaceId: spaceNamed(name), key: randomBytes(32) }));
    const spaces = Array.from({ length: 1500 }, (_, index) => several(`space-${index}`)).flat();
    const [a, b] = [await join(spaces), await join(spaces)];
    await linked(a, b);
    for (const peer of [a, b]) expect(linkOf(peer).sharedSpaces()).toHaveLength(1500);
    const late = several("late");
    for (const peer of [a, b]) peer.keys.spaces.push(...late);
    a.manager.spacesChanged();
    await until(() => [a, b].every((peer) => linkOf(peer).sharedSpaces().length === 1501), "the space that came later");
  }, 30_000);

  test("[SYNC-6] a space that comes in the middle of a handshake is recognised", async () => {
    const late = { spaceId: spaceNamed("late"), key: randomBytes(32) };
    const a: LinkPeer = await join([sharedSpace], {
      asked(times) {
        if (times > 1) return;
        a.keys.spaces.push(late);
        a.manager.spacesChanged();
      },
    });
    const b = await join([sharedSpace, late]);
    await linked(a, b);
    await until(() => [a, b].every((peer) => linkOf(peer).sharedSpaces().length === 2), "both spaces on both sides");
  });

  test("[SYNC-6] who opens connections and proves nothing keeps nobody out", async () => {
    const a = await join([sharedSpace]);
    const { port } = a.manager.debug();
    const certificate = createDeviceCertificate(randomBytes(32));
    const silent = await Promise.all(Array.from({ length: 60 }, () => dialPeer(certificate, "127.0.0.1", port)));
    const raw = Array.from({ length: 80 }, () => dialTcp(port, "127.0.0.1").on("error", () => {}));
    // It dials: whoever the manager meets by dialling itself does not pass the listener.
    await using peer = await meetServer(port, createAccount(), { own: randomBytes(32), spaces: [sharedSpace] });
    expect(peer.link.sharedSpaces()).toEqual([sharedSpace.spaceId]);
    for (const socket of [...silent, ...raw]) socket.destroy();
  }, 30_000);

  test("[SYNC-6] a guest key is proved on one link, for one space, from one side: nobody else can use the proof", async () => {
    const [a, b, c] = [await join([sharedSpace]), await join([sharedSpace]), await join([sharedSpace])];
    await linked(a, b, c);
    const towards = (from: LinkPeer, to: LinkPeer) =>
      from.manager.links().find(({ peerId }) => peerId === to.manager.debug().peerId)!;
    const guest = createSigner(randomBytes(32));
    const proof = towards(a, b).proveGuest(guest, sharedSpace.spaceId);
    const isProof = (link: PeerLink, key = guest.publicKey, spaceId = sharedSpace.spaceId) =>
      link.isGuestProof(key, spaceId, proof);
    expect(isProof(towards(b, a))).toBe(true);
    expect(isProof(towards(c, a))).toBe(false);
    expect(isProof(towards(c, b))).toBe(false);
    expect(isProof(towards(a, b))).toBe(false);
    expect(isProof(towards(b, a), guest.publicKey, spaceNamed("another-space"))).toBe(false);
    expect(isProof(towards(b, a), createSigner(randomBytes(32)).publicKey)).toBe(false);
  });

  test("[SYNC-6] [SYNC-1] peers find each other by multicast alone, and each knows the other's account and spaces", async () => {
    const a = await join([sharedSpace, { spaceId: spaceNamed("only-a"), key: randomBytes(32) }]);
    const b = await join([{ spaceId: spaceNamed("only-b"), key: randomBytes(32) }, sharedSpace]);
    await linked(a, b);
    expect(linkOf(a)).toMatchObject({ accountId: accountIdOf(b.account.publicKey), own: false });
    expect(linkOf(b)).toMatchObject({ accountId: accountIdOf(a.account.publicKey), own: false });
    expect(linkOf(a).sharedSpaces()).toEqual([sharedSpace.spaceId]);
    expect(linkOf(a).dialled).not.toBe(linkOf(b).dialled);
    expect(await linkOf(a).request("echo", utf8ToBytes("x"))).toEqual(utf8ToBytes("x"));
    expect(a.manager.debug()).toEqual({
      peerId: linkOf(b).peerId,
      enabled: true,
      listenerStarted: true,
      port: expect.any(Number),
      possibility: "possible",
      state: "connected",
      peers: [{ peerId: linkOf(a).peerId, spaceIds: [sharedSpace.spaceId], connected: true }],
    });
  });

  test("[SYNC-6] five peers end with one link each to each other, however many were dialled", async () => {
    const peers = await Promise.all(Array.from({ length: 5 }, () => join([sharedSpace])));
    await linked(...peers);
    // The polite ones look again, when they would have dialled; whoever comes then is met later than those they dial.
    for (const { clock, manager } of peers) {
      clock.aheadMs += 3_000;
      manager.spacesChanged();
    }
    peers.push(await join([sharedSpace]));
    await linked(...peers);
    for (const { manager } of peers) {
      expect(new Set(manager.links().map((link) => link.peerId)).size).toBe(5);
      for (const link of manager.links()) await link.request("echo", utf8ToBytes("x"));
    }
    for (const { events } of peers)
      expect(events.filter((event) => event.startsWith("connected")).length).toBeLessThan(11);
  });

  test("[SYNC-6] two devices of one account meet without a space in common", async () => {
    const own = randomBytes(32);
    const accountSeed = randomBytes(32);
    const [a, b] = [await join([], { own, accountSeed }), await join([], { own, accountSeed })];
    await linked(a, b);
    expect(linkOf(a)).toMatchObject({ own: true });
  });

  test("[SYNC-6] spaces that come and go change what is shared; with nothing left the link ends, and with something it begins", async () => {
    const a = await join([]);
    const b = await join([sharedSpace]);
    // Another one meets the second meanwhile, and the first meets nobody.
    const other = await join([sharedSpace]);
    await linked(b, other);
    expect(a.manager.links()).toEqual([]);
    await other.manager[Symbol.asyncDispose]();
    await until(() => b.manager.links().length === 0, "the other one to be gone");
    a.keys.spaces.push(sharedSpace);
    a.manager.spacesChanged();
    await linked(a, b);
    const second = { spaceId: spaceNamed("second"), key: randomBytes(32) };
    a.keys.spaces.push(second);
    b.keys.spaces.push(second);
    b.manager.spacesChanged();
    await until(
      () => a.events.at(-1) === "spaces second,shared-space" && b.events.at(-1) === "spaces second,shared-space",
      "both say so",
    );
    a.keys.spaces.length = 0;
    a.manager.spacesChanged();
    await until(() => a.manager.links().length === 0 && b.manager.links().length === 0, "no link");
    expect(a.events.at(-1)).toBe("disconnected nothing is shared any more");
    expect(b.manager.debug().peers).toEqual([{ peerId: a.manager.debug().peerId, spaceIds: [], connected: false }]);
  });

  test("[SYNC-6] a link that breaks comes back", async () => {
    const [a, b] = [await join([sharedSpace]), await join([sharedSpace])];
    await linked(a, b);
    linkOf(a).close("test");
    await until(() => a.events.filter((event) => event.startsWith("connected")).length >= 2, "a connected again");
    await linked(a, b);
  });

  test("[SYNC-6] a peer that restarts as the same device is found again", async () => {
    const deviceSeed = randomBytes(32);
    const a = await join([sharedSpace]);
    const b = await join([sharedSpace], { deviceSeed });
    await linked(a, b);
    await b.manager[Symbol.asyncDispose]();
    await until(() => a.manager.links().length === 0, "a noticed");
    await linked(a, await join([sharedSpace], { deviceSeed }));
  });

  test("[SYNC-8] one's own device key shown by another server is refused and logged once", async () => {
    const deviceSeed = randomBytes(32);
    const accountSeed = randomBytes(32);
    const own = randomBytes(32);
    const [a, b] = [
      await join([sharedSpace], { deviceSeed, accountSeed, own }),
      await join([sharedSpace], { deviceSeed, accountSeed, own }),
    ];
    await until(() => a.logged.length > 0 && b.logged.length > 0, "both log it");
    // Tried again as often as anything changes, it is refused as often.
    for (let times = 0; times < 3; times++) {
      const seen = a.ownKeySeen();
      for (const { manager } of [a, b]) manager.spacesChanged();
      await until(() => a.ownKeySeen() > seen, "another attempt");
    }
    expect(a.manager.links()).toEqual([]);
    for (const { logged } of [a, b]) {
      expect(logged).toHaveLength(1);
      expect(logged[0]).toContain("copy");
    }
  });

  test("[SYNC-8] two that show one device key take turns with a third, whoever dials and whichever id is the lower", async () => {
    const peerIdOf = (seed: Uint8Array) => createDeviceCertificate(seed).peerId;
    const sorted = Array.from({ length: 3 }, () => randomBytes(32)).sort((x, y) =>
      peerIdOf(x) < peerIdOf(y) ? -1 : 1,
    );
    const [low, deviceSeed, high] = sorted as [Uint8Array, Uint8Array, Uint8Array];
    const copies = [await join([sharedSpace], { deviceSeed }), await join([sharedSpace], { deviceSeed })];
    for (const seed of [low, high]) {
      const third = await join([sharedSpace], { deviceSeed: seed });
      const reaches = async (copy: LinkPeer): Promise<boolean> => {
        const link = copy.manager.links().find(({ peerId }) => peerId === peerIdOf(seed));
        const answer = await link?.request("echo", utf8ToBytes("x")).catch(() => undefined); // ended meanwhile
        return answer !== undefined;
      };
      for (const copy of copies) await until(() => reaches(copy), "each copy to have its turn", 40_000);
      await third.manager[Symbol.asyncDispose]();
    }
  }, 120_000);

  /** What a stranger gets to see, decrypted, from a peer it dials and from one that dials it. */
  const strangerSees = async (victim: LinkPeer): Promise<Buffer> => {
    const seen: Buffer[] = [];
    const certificate = createDeviceCertificate(randomBytes(32));
    const probe = (socket: TLSSocket) => {
      socket.on("data", (data: Buffer) => void seen.push(data));
      socket.on("error", () => {}); // the victim hangs up
      const closed = new Promise<void>((done) => socket.once("close", () => done()));
      for (const payload of [new Uint8Array([1, ...randomBytes(16 * 64)]), randomBytes(96)])
        socket.write(encodeFrame(FRAME.handshake, 0, payload));
      socket.write(encodeFrame(FRAME.request, 1, new Uint8Array([4, ...utf8ToBytes("echo"), 65])));
      return closed;
    };
    await probe(await dialPeer(certificate, "127.0.0.1", victim.manager.debug().port));
    const dialled = Promise.withResolvers<void>();
    const listener = keep(
      await listenForPeers({
        certificate,
        host: "127.0.0.1",
        port: 0,
        log: silentLog,
        onSocket: (socket) => probe(socket).then(() => dialled.resolve()),
      }),
    );
    const mdns = createMdns({ port: mdnsPort(), interface: "127.0.0.1", bind: "0.0.0.0" });
    const name = `${Buffer.from(randomBytes(8)).toString("hex")}._svc-link._tcp.local`;
    mdns.respond([{ name, type: "SRV", ttl: 60, data: { port: listener.port, target: "x.local" } }]);
    await dialled.promise;
    mdns.destroy();
    return Buffer.concat(seen);
  };

  test("[SYNC-9] a stranger, dialling or dialled, learns no space, no account, no content", async () => {
    const victim = await join([sharedSpace, { spaceId: spaceNamed("bafyreisecretspace"), key: randomBytes(32) }]);
    const member = await join([sharedSpace]);
    await linked(victim, member);
    const seen = await strangerSees(victim);
    expect(seen.length).toBeGreaterThan(500); // it was answered
    const secrets = [
      Buffer.from(sharedSpace.spaceId),
      Buffer.from("bafyreisecretspace"),
      Buffer.from(sharedSpace.key),
      Buffer.from(victim.account.publicKey),
      Buffer.from(accountIdOf(victim.account.publicKey)),
      Buffer.from(member.account.publicKey),
      Buffer.from(linkOf(victim).peerId),
    ];
    for (const secret of secrets) {
      for (const form of [
        secret,
        Buffer.from(secret.toString("hex")),
        Buffer.from(secret.toString("base64").slice(0, 20)),
        Buffer.from(secret.toString("utf8"), "utf16le"),
      ]) {
        expect(seen.includes(form)).toBe(false);
      }
    }
    expect(Buffer.concat([seen, Buffer.from(sharedSpace.spaceId)]).includes(Buffer.from(sharedSpace.spaceId))).toBe(
      true,
    ); // the search finds what is there
    expect(linkOf(victim).peerId).toBe(member.manager.debug().peerId);
  });

  test("[SYNC-9] what passes between members is not to be read on the wire", async () => {
    const a = await join([sharedSpace]);
    await using proxy = await startTcpProxy(a.manager.debug().port, { captureBytes: 1 << 20 });
    const b = createDeviceCertificate(randomBytes(32));
    const socket = await dialPeer(b, "127.0.0.1", proxy.port);
    socket.write(encodeFrame(FRAME.handshake, 0, utf8ToBytes("a-canary-in-plain-words")));
    socket.on("error", () => {}); // refused
    await new Promise<void>((done) => socket.once("close", () => done()));
    const wire = Buffer.concat(proxy.captured());
    expect(wire.length).toBeGreaterThan(500);
    expect(wire.includes("a-canary-in-plain-words")).toBe(false);
    expect(wire.includes(Buffer.from(a.account.publicKey))).toBe(false);
  });

  test("[SYNC-6] no certificate, another kind of certificate, another protocol, plain text, silence: no link, and members go on", async () => {
    const [a, b] = [await join([sharedSpace]), await join([sharedSpace])];
    await linked(a, b);
    const port = a.manager.debug().port;
    const authority = makeTestCa();
    const strangers = [
      dialTls({ host: "127.0.0.1", port, rejectUnauthorized: false, ALPNProtocols: ["svc-link/1"] }),
      dialTls({
        host: "127.0.0.1",
        port,
        rejectUnauthorized: false,
        ALPNProtocols: ["svc-link/1"],
        cert: authority.certificate,
        key: authority.privateKey,
      }),
      dialTls({ host: "127.0.0.1", port, rejectUnauthorized: false, maxVersion: "TLSv1.2" }),
      dialTcp(port, "127.0.0.1", function (this: ReturnType<typeof dialTcp>) {
        this.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
      }),
    ];
    await Promise.all(
      strangers.map(
        (socket) =>
          new Promise<void>((done) => {
            socket.on("error", () => {}); // that is what is wanted
            socket.on("data", () => {});
            socket.once("close", () => done());
          }),
      ),
    );
    expect(a.manager.links()).toHaveLength(1);
    expect(await linkOf(b).request("echo", utf8ToBytes("x"))).toEqual(utf8ToBytes("x"));
  });

  test("[SYNC-6] a flood of announcements and of connections does not keep members apart", async () => {
    const a = await join([sharedSpace]);
    const mdns = createMdns({ port: mdnsPort(), interface: "127.0.0.1", bind: "0.0.0.0" });
    for (let i = 0; i < 600; i++) {
      const name = `${Buffer.from(randomBytes(8)).toString("hex")}._svc-link._tcp.local`;
      mdns.respond([{ name, type: "SRV", ttl: 60, data: { port: 1 + (i % 9), target: "x.local" } }]);
    }
    const idle = Array.from({ length: 150 }, () => {
      const socket = dialTcp(a.manager.debug().port, "127.0.0.1");
      socket.on("error", () => {}); // refused above the limit
      return socket;
    });
    const b = await join([sharedSpace]);
    await until(() => a.manager.links().length === 1 && b.manager.links().length === 1, "linked", 60_000);
    for (const socket of idle) socket.destroy();
    mdns.destroy();
    expect(a.manager.debug().peers.length).toBe(1);
  }, 90_000);

  test("[SYNC-13] an address outside the LAN is never dialled, whatever is announced", async () => {
    await expect(dialPeer(createDeviceCertificate(randomBytes(32)), "192.0.2.1", 80)).rejects.toThrow("not on the LAN");
    await expect(dialPeer(createDeviceCertificate(randomBytes(32)), "example.org", 80)).rejects.toThrow(
      "not on the LAN",
    );
  });

  test("[SYNC-4] the frames of a dishonest member end its link only", async () => {
    const [a, b] = [await join([sharedSpace]), await join([sharedSpace])];
    await linked(a, b);
    // A member has the right key, and then sends what no peer would.
    const socket = await dialPeer(createDeviceCertificate(randomBytes(32)), "127.0.0.1", a.manager.debug().port);
    const reader = createFrameReader(HANDSHAKE_BYTES_MAX);
    socket.on("data", (data: Uint8Array) => void reader.push(data));
    socket.on("error", () => {}); // it is hung up on
    socket.write(Buffer.alloc(100_000, 0xff));
    await new Promise<void>((done) => socket.once("close", () => done()));
    expect(a.manager.links()).toHaveLength(1);
    expect(await linkOf(b).request("echo", utf8ToBytes("x"))).toEqual(utf8ToBytes("x"));
  });
});
