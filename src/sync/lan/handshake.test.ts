import { describe, expect, test } from "bun:test";
import { socketPair } from "../../../test/support/network/socket-pair.ts";
import { concatBytes } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import { randomBytes } from "../../base/random.ts";
import { accountIdOf } from "../../crypto/account-id.ts";
import { peerIdOf } from "../../crypto/peer-id.ts";
import { publicKeyOfSeed } from "../../crypto/private-key.ts";
import { createSigner } from "../../crypto/sign.ts";
import { createFrameReader, encodeFrame, FRAME, HANDSHAKE_BYTES_MAX } from "./framing.ts";
import {
  createFrameSource,
  type FrameSource,
  HandshakeError,
  type HandshakeFailure,
  type HandshakeResult,
  shakeHands,
} from "./handshake.ts";
import type { LinkKeys, LinkRole } from "./space-tokens.ts";

const spaceId = "bafyspace" as SpaceId;
const spaceKey = randomBytes(32);

interface Party {
  readonly identity: { peerId: ReturnType<typeof peerIdOf>; account: ReturnType<typeof createSigner> };
  readonly keys: LinkKeys;
}
const party = (options: { spaces?: LinkKeys["spaces"]; account?: Uint8Array; own?: Uint8Array } = {}): Party => ({
  identity: {
    peerId: peerIdOf(publicKeyOfSeed(randomBytes(32))),
    account: createSigner(options.account ?? randomBytes(32)),
  },
  keys: { own: options.own ?? randomBytes(32), spaces: options.spaces ?? [{ spaceId, key: spaceKey }] },
});
const source = (socket: Parameters<typeof createFrameSource>[0]): FrameSource =>
  createFrameSource(socket, createFrameReader(HANDSHAKE_BYTES_MAX), 2000);
const failureOf = async (result: Promise<HandshakeResult>): Promise<HandshakeFailure | HandshakeResult> =>
  result.catch((error: unknown) => {
    if (error instanceof HandshakeError) return error.failure;
    throw error;
  });

/** Runs both ends over one connection; what one end throws closes it, as the owner of the socket does. */
async function meet(dialler: Party, listener: Party, exporters: [Uint8Array, Uint8Array] = sameExporter()) {
  using pair = await socketPair();
  const run = (
    frames: FrameSource,
    end: { destroy(): unknown },
    me: Party,
    other: Party,
    role: LinkRole,
    exporter: Uint8Array,
  ) =>
    failureOf(shakeHands(frames, me.identity, me.keys, { role, exporter, remotePeerId: other.identity.peerId })).then(
      (result) => {
        if (typeof result === "string") end.destroy();
        return result;
      },
    );
  return await Promise.all([
    run(source(pair.near), pair.near, dialler, listener, "dialler", exporters[0]),
    run(source(pair.far), pair.far, listener, dialler, "listener", exporters[1]),
  ]);
}
const sameExporter = (): [Uint8Array, Uint8Array] => {
  const exporter = randomBytes(32);
  return [exporter, exporter];
};

describe("handshake", () => {
  test("[SYNC-6] two members learn each other's account and the spaces both have", async () => {
    const a = party();
    const b = party();
    expect(await meet(a, b)).toEqual([
      { own: false, inboxMessages: false, spaceIds: [spaceId], accountId: accountIdOf(b.identity.account.publicKey) },
      { own: false, inboxMessages: false, spaceIds: [spaceId], accountId: accountIdOf(a.identity.account.publicKey) },
    ]);
  });

  test("[SYNC-6] two devices of one account know each other without any space", async () => {
    const account = randomBytes(32);
    const own = randomBytes(32);
    const results = await meet(party({ account, own, spaces: [] }), party({ account, own, spaces: [] }));
    for (const result of results) expect(result).toMatchObject({ own: true, inboxMessages: false, spaceIds: [] });
  });

  test("[SYNC-9] strangers part before any account is named", async () => {
    const stranger = party({ spaces: [{ spaceId, key: randomBytes(32) }] });
    expect(await meet(stranger, party())).toEqual(["nothing-shared", "nothing-shared"]);
    expect(await meet(party(), stranger)).toEqual(["nothing-shared", "nothing-shared"]);
  });

  test("[SYNC-6] one who took the account's own key without being the account is refused", async () => {
    const own = randomBytes(32);
    expect(await meet(party({ own, spaces: [] }), party({ own, spaces: [] }))).toContain("bad-account");
  });

  test("[SYNC-6] on another TLS connection nothing matches: what is relayed is worth nothing", async () => {
    expect(await meet(party(), party(), [randomBytes(32), randomBytes(32)])).toEqual([
      "nothing-shared",
      "nothing-shared",
    ]);
  });

  test("[SYNC-6] a member in the middle cannot pass another's proof off as his own", async () => {
    const victim = party();
    const target = party();
    const mallory = party();
    using toVictim = await socketPair();
    using toTarget = await socketPair();
    const exporters = { victim: randomBytes(32), target: randomBytes(32) };
    // The victim dials Mallory, who dials the target and shows it what the victim shows him.
    const victimEnds = failureOf(
      shakeHands(source(toVictim.near), victim.identity, victim.keys, {
        role: "dialler",
        exporter: exporters.victim,
        remotePeerId: mallory.identity.peerId,
      }),
    );
    const targetEnds = failureOf(
      shakeHands(source(toTarget.far), target.identity, target.keys, {
        role: "listener",
        exporter: exporters.target,
        remotePeerId: mallory.identity.peerId,
      }),
    );
    // He is a member himself, so tokens are no obstacle: he runs both matchings honestly and swaps the proofs.
    const stolen = Promise.withResolvers<Uint8Array>();
    const tap = (
      frames: FrameSource,
      swap: (payload: Uint8Array) => Uint8Array | Promise<Uint8Array>,
    ): FrameSource => ({
      ...frames,
      send: (payload) => void Promise.resolve(swap(payload)).then((swapped) => frames.send(swapped)),
    });
    const fromVictim = source(toVictim.far);
    const withVictim = failureOf(
      shakeHands(
        {
          ...fromVictim,
          next: async () => {
            const payload = await fromVictim.next();
            if (payload.length === 96) stolen.resolve(payload);
            return payload;
          },
        },
        mallory.identity,
        mallory.keys,
        { role: "listener", exporter: exporters.victim, remotePeerId: victim.identity.peerId },
      ),
    );
    const withTarget = failureOf(
      shakeHands(
        tap(source(toTarget.near), (payload) => (payload.length === 96 ? stolen.promise : payload)),
        mallory.identity,
        mallory.keys,
        { role: "dialler", exporter: exporters.target, remotePeerId: target.identity.peerId },
      ),
    );
    expect(await targetEnds).toBe("bad-proof");
    toTarget.far.destroy();
    expect(await withTarget).toBe("closed");
    expect(await victimEnds).toMatchObject({ accountId: accountIdOf(mallory.identity.account.publicKey) });
    await withVictim;
  });

  test("[SYNC-6] a proof reflected to its author is refused", async () => {
    const author = party();
    const mirror = party();
    using pair = await socketPair();
    const exporter = randomBytes(32);
    const authorEnds = failureOf(
      shakeHands(source(pair.near), author.identity, author.keys, {
        role: "dialler",
        exporter,
        remotePeerId: mirror.identity.peerId,
      }),
    );
    const frames = source(pair.far);
    const reflected = failureOf(
      shakeHands(
        {
          ...frames,
          next: async () => {
            const payload = await frames.next();
            if (payload.length === 96) frames.send(payload);
            return payload;
          },
          send: (payload) => {
            if (payload.length !== 96) frames.send(payload);
          },
        },
        mirror.identity,
        mirror.keys,
        { role: "listener", exporter, remotePeerId: author.identity.peerId },
      ),
    );
    expect(await authorEnds).toBe("bad-proof");
    await reflected;
  });

  const garbage: [string, Uint8Array, HandshakeFailure][] = [
    ["random bytes", randomBytes(500), "bad-format"],
    ["an HTTP request", new TextEncoder().encode("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "bad-format"],
    [
      "another version",
      encodeFrame(FRAME.handshake, 0, concatBytes(Uint8Array.of(9), new Uint8Array(256))),
      "bad-format",
    ],
    ["tokens of odd length", encodeFrame(FRAME.handshake, 0, new Uint8Array(1 + 255)), "bad-format"],
    ["no tokens", encodeFrame(FRAME.handshake, 0, Uint8Array.of(1)), "bad-format"],
    ["more tokens than allowed", encodeFrame(FRAME.handshake, 0, new Uint8Array(1 + 8192 * 16)), "bad-format"],
    ["another frame type", encodeFrame(FRAME.request, 0, new Uint8Array(257)), "bad-format"],
    [
      "a flood of frames",
      concatBytes(...Array.from({ length: 100 }, () => encodeFrame(FRAME.handshake, 0, new Uint8Array(0)))),
      "bad-format",
    ],
    ["silence", new Uint8Array(0), "timeout"],
    ["a truncated frame", encodeFrame(FRAME.handshake, 0, new Uint8Array(257)).subarray(0, 100), "timeout"],
  ];
  test.each(garbage)("[SYNC-4] %s ends the handshake", async (_name, bytes, failure) => {
    using pair = await socketPair();
    const listener = party();
    const frames = createFrameSource(pair.far, createFrameReader(HANDSHAKE_BYTES_MAX), 150);
    const ended = failureOf(
      shakeHands(frames, listener.identity, listener.keys, {
        role: "listener",
        exporter: randomBytes(32),
        remotePeerId: party().identity.peerId,
      }),
    );
    pair.near.write(bytes);
    expect(await ended).toBe(failure);
  });

  test("a peer that goes away ends it", async () => {
    using pair = await socketPair();
    const me = party();
    const ended = failureOf(
      shakeHands(source(pair.far), me.identity, me.keys, {
        role: "listener",
        exporter: randomBytes(32),
        remotePeerId: party().identity.peerId,
      }),
    );
    pair.near.destroy();
    expect(await ended).toBe("closed");
  });
});
