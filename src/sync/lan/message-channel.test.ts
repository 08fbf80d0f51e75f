import { describe, expect, test } from "bun:test";
import { EventEmitter } from "node:events";
import { socketPair } from "../../../test/support/network/socket-pair.ts";
import { until } from "../../../test/support/server/client.ts";
import { bytesToUtf8, concatBytes, utf8ToBytes } from "../../base/bytes.ts";
import { randomBytes } from "../../base/random.ts";
import { createFrameReader, encodeFrame, FRAGMENT_BYTES, FRAME } from "./framing.ts";
import { CHANNEL_LIMITS, createMessageChannel, type MessageHandlers } from "./message-channel.ts";

type Pair = Awaited<ReturnType<typeof socketPair>>;

function channelOn(socket: Pair["near"], handlers: Partial<MessageHandlers> = {}) {
  const closed: string[] = [];
  const channel = createMessageChannel(socket, createFrameReader(FRAGMENT_BYTES), [], {
    request: () => undefined,
    notice: () => undefined,
    closed: (reason) => closed.push(reason),
    ...handlers,
  });
  return { channel, closed };
}
const echo: Partial<MessageHandlers> = {
  request: (kind, body) => (kind === "echo" ? Promise.resolve(body.slice()) : undefined),
};
const kinded = (kind: string, body: Uint8Array) => concatBytes(Uint8Array.of(kind.length), utf8ToBytes(kind), body);

describe("message channel", () => {
  test("requests of all sizes are answered, many at once, in both directions", async () => {
    using pair = await socketPair();
    const near = channelOn(pair.near, echo);
    const far = channelOn(pair.far, echo);
    const sizes = [0, 1, FRAGMENT_BYTES - 6, FRAGMENT_BYTES, FRAGMENT_BYTES + 1, 300_000, CHANNEL_LIMITS.messageBytes];
    await Promise.all(
      [near, far].flatMap(({ channel }) =>
        sizes.map(async (size) => {
          const body = randomBytes(size);
          expect(Buffer.compare(await channel.request("echo", body), body)).toBe(0);
        }),
      ),
    );
  });

  test("a small request overtakes large ones that were begun before it", async () => {
    using pair = await socketPair();
    const order: string[] = [];
    const near = channelOn(pair.near);
    channelOn(pair.far, {
      request: async (kind) => {
        order.push(kind);
        return new Uint8Array(0);
      },
    });
    const body = randomBytes(CHANNEL_LIMITS.messageBytes);
    pair.far.pause(); // until more is on its way than the system's own buffers hold
    const sending = ["bulk", "bulk", "bulk", "bulk", "bulk"].map((kind) => near.channel.request(kind, body));
    sending.push(near.channel.request("small", new Uint8Array(1)));
    pair.far.resume();
    await Promise.all(sending);
    // Behind what the system's buffers took at once, which is not all.
    expect(order.indexOf("small")).toBeLessThan(4);
  });

  test("a large message gets through a crowd of small ones", async () => {
    using pair = await socketPair();
    const order: string[] = [];
    const near = channelOn(pair.near);
    channelOn(pair.far, {
      notice: async (kind) => void order.push(kind),
    });
    pair.far.pause();
    // Until the system's own buffers are full.
    const filling = ["fill", "fill", "fill"].map((kind) =>
      near.channel.notify(kind, randomBytes(CHANNEL_LIMITS.messageBytes)),
    );
    const large = near.channel.notify("large", randomBytes(2 * FRAGMENT_BYTES));
    const crowd = Array.from({ length: 100 }, () => near.channel.notify("small", new Uint8Array(1)));
    pair.far.resume();
    await Promise.all([...filling, large, ...crowd]);
    await until(() => order.length === 104, "all notices");
    expect(order.lastIndexOf("small")).toBeGreaterThan(order.indexOf("large"));
  });

  test("[SYNC-4] notices above what may wait are dropped and counted, and the link goes on", async () => {
    using pair = await socketPair();
    const near = channelOn(pair.near);
    const open = Promise.withResolvers<void>();
    const far = channelOn(pair.far, { ...echo, notice: () => open.promise });
    for (let i = 0; i < CHANNEL_LIMITS.queuedNotices + 11; i++) await near.channel.notify("n", new Uint8Array(1));
    expect(await near.channel.request("echo", Uint8Array.of(1))).toEqual(Uint8Array.of(1));
    expect(far.channel.dropped()).toBe(10);
    open.resolve();
  });

  test("notices arrive in order", async () => {
    using pair = await socketPair();
    const got: (string | undefined)[] = [];
    const near = channelOn(pair.near);
    channelOn(pair.far, {
      notice: async (_kind, body) => {
        got.push(bytesToUtf8(body));
      },
    });
    for (let i = 0; i < 20; i++) await near.channel.notify("n", utf8ToBytes(`${i}`));
    await until(() => got.length === 20, "all notices");
    expect(got.join()).toBe(Array.from({ length: 20 }, (_, i) => i).join());
  });

  test("[SYNC-4] an unknown kind, a handler that fails and an answer too large are told, without a word of why", async () => {
    using pair = await socketPair();
    const near = channelOn(pair.near);
    channelOn(pair.far, {
      request: (kind) => {
        if (kind === "fails") return Promise.reject(new Error("secret path /home"));
        return kind === "large" ? Promise.resolve(new Uint8Array(CHANNEL_LIMITS.messageBytes + 1)) : undefined;
      },
    });
    for (const [kind, reason] of [
      ["nobody", "unknown-kind"],
      ["fails", "failed"],
      ["large", "too-large"],
    ] as const) {
      await expect(near.channel.request(kind, new Uint8Array(0))).rejects.toMatchObject({
        code: "network.unavailable",
        message: `The peer did not answer: ${reason}`,
      });
    }
    await expect(near.channel.request("x", new Uint8Array(CHANNEL_LIMITS.messageBytes + 1))).rejects.toMatchObject({
      code: "network.unavailable",
    });
  });

  test("[SYNC-4] requests above the number handled at once are answered busy; the others are served", async () => {
    using pair = await socketPair();
    const open = Promise.withResolvers<void>();
    const near = channelOn(pair.near);
    channelOn(pair.far, { request: () => open.promise.then(() => Uint8Array.of(1)) });
    const all = Array.from({ length: CHANNEL_LIMITS.handlers + 5 }, () =>
      near.channel.request("wait", new Uint8Array(0)).then(
        () => "served",
        (error: Error) => error.message,
      ),
    );
    const refused = await Promise.all(all.slice(CHANNEL_LIMITS.handlers));
    expect(new Set(refused)).toEqual(new Set(["The peer did not answer: busy"]));
    open.resolve();
    expect(new Set(await Promise.all(all.slice(0, CHANNEL_LIMITS.handlers)))).toEqual(new Set(["served"]));
  });

  test("a request without an answer times out; an answer that comes later is dropped", async () => {
    using pair = await socketPair();
    const late = Promise.withResolvers<Uint8Array>();
    const near = channelOn(pair.near);
    channelOn(pair.far, { request: (kind) => (kind === "late" ? late.promise : Promise.resolve(Uint8Array.of(2))) });
    await expect(near.channel.request("late", new Uint8Array(0), { timeoutMs: 50 })).rejects.toMatchObject({
      code: "network.unavailable",
    });
    late.resolve(randomBytes(100_000));
    expect(await near.channel.request("next", new Uint8Array(0))).toEqual(Uint8Array.of(2));
  });

  test("what waits when the peer goes is rejected, and so is what comes after", async () => {
    using pair = await socketPair();
    const near = channelOn(pair.near);
    const asked = Promise.withResolvers<void>();
    channelOn(pair.far, {
      request: () => {
        asked.resolve();
        return new Promise(() => {});
      },
    });
    const waiting = near.channel.request("x", new Uint8Array(0));
    await asked.promise;
    pair.far.destroy();
    await expect(waiting).rejects.toMatchObject({ code: "network.unavailable" });
    await expect(near.channel.request("x", new Uint8Array(0))).rejects.toMatchObject({ code: "network.unavailable" });
    expect(near.closed).toEqual(["the connection was closed"]);
  });

  test("frames that came with the handshake are not lost", async () => {
    using pair = await socketPair();
    const got: string[] = [];
    const early = [{ type: FRAME.notice, more: false, id: 1, payload: kinded("early", utf8ToBytes("x")) }];
    createMessageChannel(pair.near, createFrameReader(FRAGMENT_BYTES), early, {
      request: () => undefined,
      notice: async (kind) => void got.push(kind),
      closed: () => {},
    });
    await until(() => got.length === 1, "the early notice");
  });

  const manyPartials = concatBytes(
    ...Array.from({ length: CHANNEL_LIMITS.partialMessages + 1 }, (_, id) =>
      encodeFrame(FRAME.request, id, randomBytes(10), true),
    ),
  );
  const endless = concatBytes(
    ...Array.from({ length: CHANNEL_LIMITS.messageBytes / FRAGMENT_BYTES + 1 }, () =>
      encodeFrame(FRAME.request, 1, new Uint8Array(FRAGMENT_BYTES), true),
    ),
  );
  const attacks: [string, Uint8Array, string][] = [
    [
      "a frame over the limit",
      concatBytes(Uint8Array.of(0xff, 0xff, 0xff, 0xff), new Uint8Array(100)),
      "the peer broke the frame format",
    ],
    ["garbage", randomBytes(1000).fill(0x20, 0, 1), "the peer broke the frame format"],
    ["an unknown type", encodeFrame(77, 1, new Uint8Array(3)), "the peer sent a frame of an unknown type"],
    [
      "a second handshake",
      encodeFrame(FRAME.handshake, 0, new Uint8Array(3)),
      "the peer sent a frame of an unknown type",
    ],
    [
      "a request without a kind",
      encodeFrame(FRAME.request, 1, Uint8Array.of(0)),
      "the peer sent a message without a kind",
    ],
    [
      "a kind longer than its message",
      encodeFrame(FRAME.request, 1, Uint8Array.of(20, 65)),
      "the peer sent a message without a kind",
    ],
    [
      "a kind that is no text",
      encodeFrame(FRAME.request, 1, Uint8Array.of(1, 0xff)),
      "the peer sent a message without a kind",
    ],
    ["too many messages in parts", manyPartials, "the peer passed a limit"],
    ["a message without an end", endless, "the peer passed a limit"],
    [
      "empty fragments without an end",
      encodeFrame(FRAME.request, 1, new Uint8Array(0), true),
      "the peer passed a limit",
    ],
    [
      "a message in crumbs",
      encodeFrame(FRAME.request, 1, new Uint8Array(FRAGMENT_BYTES - 1), true),
      "the peer passed a limit",
    ],
  ];
  test.each(attacks)("[SYNC-4] %s closes the link", async (_name, bytes, reason) => {
    using pair = await socketPair();
    const near = channelOn(pair.near, echo);
    pair.far.on("error", () => {}); // reset while it writes
    pair.far.write(bytes);
    await until(() => near.closed.length > 0, "closed");
    expect(near.closed).toEqual([reason]);
  });

  test("[SYNC-4] answers nobody asked for are dropped and keep nothing", async () => {
    using pair = await socketPair();
    const near = channelOn(pair.near, echo);
    for (let id = 0; id < 500; id++)
      pair.far.write(encodeFrame(FRAME.response, id, new Uint8Array(FRAGMENT_BYTES), true));
    pair.far.write(encodeFrame(FRAME.request, 9, kinded("echo", utf8ToBytes("still there"))));
    const answer = await new Promise<Uint8Array>((done) => pair.far.once("data", done));
    expect(bytesToUtf8(answer.subarray(9))).toBe("still there");
    expect(near.closed).toEqual([]);
  });

  test("[SYNC-4] who asks and pings without reading is given no more than one queue of answers", async () => {
    const written: number[] = [];
    let reads = false;
    const socket = Object.assign(new EventEmitter(), {
      write: (bytes: Uint8Array) => written.push(bytes[4]!) > 0 && reads,
      destroy: () => {},
    });
    const far = channelOn(socket as never, { request: () => new Promise(() => {}) });
    const asked = concatBytes(
      ...Array.from({ length: 20_000 }, (_, id) =>
        concatBytes(
          encodeFrame(FRAME.request, id, kinded("echo", new Uint8Array(0))),
          encodeFrame(FRAME.ping, 0, new Uint8Array(0)),
        ),
      ),
    );
    socket.emit("data", asked);
    await Promise.resolve();
    reads = true;
    socket.emit("drain");
    await Bun.sleep(0);
    expect(written.filter((type) => type === FRAME.pong)).toHaveLength(1);
    const busy = written.filter((type) => type === FRAME.failure).length;
    expect(busy).toBe(CHANNEL_LIMITS.queuedSmall);
    socket.emit("data", encodeFrame(FRAME.ping, 0, new Uint8Array(0)));
    expect(written.at(-1)).toBe(FRAME.pong);
    far.channel.close("done");
  });

  test("[SYNC-4] a peer that does not read holds up no more than the queue", async () => {
    using pair = await socketPair();
    pair.far.pause();
    const near = channelOn(pair.near);
    let handed = 0;
    const body = randomBytes(CHANNEL_LIMITS.messageBytes);
    const sending = Array.from({ length: 64 }, () =>
      near.channel.notify("n", body).then(
        () => handed++,
        () => {},
      ),
    );
    await until(() => pair.near.writableNeedDrain, "the system to take no more");
    for (let turn = 0; turn < 20; turn++) await Bun.sleep(0);
    expect(handed).toBeLessThan(32); // the rest waits with its callers, not in a queue
    near.channel.close("done");
    await Promise.all(sending);
  });
});
