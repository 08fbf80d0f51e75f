/**
 * What a peer on the LAN exchanges with us, made by somebody who knows its structure: the message channel goes on or ends the
 * link, keeps no request of ours waiting and hands nothing on that has no bound; chunks of files are given as they are, to
 * those alone who may have them, and taken only as they are. `FUZZ_CASES` says how much, `SEED` repeats a run.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { EventEmitter } from "node:events";
import { join } from "node:path";
import { bytesToUtf8, concatBytes, equalBytes, utf8ToBytes } from "../../src/base/bytes.ts";
import { systemClock } from "../../src/base/clock.ts";
import { decodeCbor, encodeCbor } from "../../src/base/dag-cbor.ts";
import type { PeerId, SpaceId } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import { cidOf } from "../../src/crypto/cid.ts";
import { sha256 } from "../../src/crypto/hash.ts";
import { openBlobStore } from "../../src/files/blob-store.ts";
import { createChunkSources } from "../../src/files/chunk-sources.ts";
import { digestAt, levelCounts, positionIn } from "../../src/files/chunk-tree.ts";
import type { Content } from "../../src/files/content.ts";
import { CHUNK_BYTES } from "../../src/files/content-seal.ts";
import { createContentSealer } from "../../src/files/content-sealer.ts";
import { type ContentStore, createContentStore } from "../../src/files/content-store.ts";
import type { WholeContent } from "../../src/files/manifests.ts";
import { SvcError } from "../../src/protocol/errors.ts";
import { createFrameReader, encodeFrame, FRAGMENT_BYTES, FRAME } from "../../src/sync/lan/framing.ts";
import { createChunkServer, createPeerChunks } from "../../src/sync/lan/lan-chunks.ts";
import { CHANNEL_LIMITS, createMessageChannel } from "../../src/sync/lan/message-channel.ts";
import type { PeerLink } from "../../src/sync/lan/peer-link.ts";
import { fuzzCases } from "../support/hostile/fuzz-cases.ts";
import { bytesFrom, mutateBytes, mutateEncoded } from "../support/hostile/mutate.ts";
import { createRng, exploringSeeds, type Rng } from "../support/rng.ts";
import { rule } from "../support/rule.ts";
import { type ScratchDir, scratchDir } from "../support/scratch.ts";

const seeds = exploringSeeds("link-fuzz");
/** What a run of all cases may leave behind. */
const LEFT_BYTES = 300 << 20;
const OWN_REQUESTS = 3;
const ENDINGS = [
  "the peer broke the frame format",
  "the peer passed a limit",
  "the peer sent a frame of an unknown type",
  "the peer sent a message without a kind",
];
const PROBE = 0xffff_fff0;
/** More than there are frames to answer. */
const TURNS = 60;

const kinded = (kind: string, body: Uint8Array): Uint8Array =>
  concatBytes(Uint8Array.of(kind.length), utf8ToBytes(kind), body);

/** A message in frames, as a peer sends it; now and then so large that it takes several. */
function anyMessage(rng: Rng): Uint8Array[] {
  const [type, id] = [rng.pick(Object.values(FRAME).slice(1)), rng.int(1, OWN_REQUESTS + 3)];
  const isOurs = type === FRAME.request || type === FRAME.notice;
  const body = bytesFrom(rng, rng.chance(0.02) ? FRAGMENT_BYTES + 5 : rng.int(0, 40));
  if (type === FRAME.failure) return [encodeFrame(type, id, utf8ToBytes(rng.pick(["busy", "failed", "<b>", ""])))];
  const whole = isOurs ? kinded(rng.pick(["echo", "fails", "nobody", "~match"]), body) : body;
  const frames: Uint8Array[] = [];
  for (let at = 0; at === 0 || at < whole.length; at += FRAGMENT_BYTES) {
    const more = at + FRAGMENT_BYTES < whole.length;
    frames.push(encodeFrame(type, id, whole.subarray(at, at + FRAGMENT_BYTES), more));
  }
  return frames;
}

/** One thing in a frame is another: its type, its id, what follows it, or its payload; it stays a frame. */
function spoiltFrame(rng: Rng, frame: Uint8Array): Uint8Array {
  const [first, payload] = [frame[4]!, frame.subarray(9)];
  return rng.pick<() => Uint8Array>([
    () => encodeFrame(rng.int(0, 127), 1, payload, rng.chance(0.3)),
    () => encodeFrame(first & 0x7f, rng.int(0, 2 ** 32 - 1), payload, first > 0x7f),
    () => encodeFrame(first & 0x7f, 1, payload, first < 0x80),
    () => encodeFrame(first & 0x7f, 1, mutateBytes(rng, payload).subarray(0, FRAGMENT_BYTES), first > 0x7f),
  ])();
}

/** An end of a link whose other end is the test. */
function fakeSocket(rng: Rng) {
  const reader = createFrameReader(FRAGMENT_BYTES);
  const written: { type: number; more: boolean; id: number; payload: Uint8Array }[] = [];
  const isSlow = rng.chance(0.2);
  const socket = Object.assign(new EventEmitter(), {
    write(bytes: Uint8Array): boolean {
      written.push(...reader.push(bytes)!);
      return !isSlow;
    },
    destroy() {},
  });
  return { socket, written };
}

async function tryChannel(rng: Rng): Promise<string | undefined> {
  const { socket, written } = fakeSocket(rng);
  const endings: string[] = [];
  let widest = 0;
  const taken = (kind: string, body: Uint8Array): void => {
    widest = Math.max(widest, body.length);
    if (kind.length === 0 || kind.length > CHANNEL_LIMITS.kindChars) throw new Error("a kind without a bound");
  };
  const channel = createMessageChannel(socket as never, createFrameReader(FRAGMENT_BYTES), [], {
    request(kind, body) {
      taken(kind, body);
      if (kind === "fails") return Promise.reject(new Error("secret"));
      return kind === "echo" ? Promise.resolve(body.slice()) : undefined;
    },
    async notice(kind, body) {
      taken(kind, body);
    },
    closed: (reason) => endings.push(reason),
  });
  const settled = Array.from({ length: OWN_REQUESTS }, () =>
    channel.request("ours", new Uint8Array(1)).then(
      (body) => (body instanceof Uint8Array ? undefined : "answers what is no bytes"),
      (error: unknown) => (error instanceof SvcError && !/<b>/.test(error.message) ? undefined : `rejects ${error}`),
    ),
  );
  const frames = Array.from({ length: rng.int(1, 12) }, () => anyMessage(rng)).flat();
  const spoilt = frames.map((frame) => (rng.chance(0.15) ? spoiltFrame(rng, frame) : frame));
  const isWhole = rng.chance(0.7);
  const stream = isWhole ? concatBytes(...spoilt) : mutateBytes(rng, concatBytes(...spoilt));
  for (let at = 0; at < stream.length; ) {
    const end = Math.min(stream.length, at + rng.pick([1, 9, 100, 70_000]));
    socket.emit("data", stream.subarray(at, end));
    at = end;
  }
  const probe = utf8ToBytes("still here");
  if (isWhole) socket.emit("data", encodeFrame(FRAME.request, PROBE, kinded("echo", probe)));
  const reply = () => written.find(({ type, id }) => type === FRAME.response && id === PROBE);
  // A slow socket takes one frame a turn.
  const turns = isWhole ? TURNS : 3;
  for (let turn = 0; turn < turns && endings.length === 0 && !reply(); turn++) {
    socket.emit("drain");
    await Bun.sleep(0);
  }
  const goesOn = endings.length > 0 || equalBytes(reply()?.payload ?? new Uint8Array(0), probe);
  channel.close("the test is over");
  const rejected = (await Promise.all(settled)).find((fault) => fault !== undefined);
  if (rejected) return rejected;
  if (endings.length !== 1) return `ends ${endings.length} times`;
  if (endings[0] !== "the test is over" && !ENDINGS.includes(endings[0]!)) return `ends for ${endings[0]}`;
  if (isWhole && !goesOn) return "goes on without answering";
  if (widest > CHANNEL_LIMITS.messageBytes) return `hands on ${widest} bytes`;
  const leak = written.find(({ type, payload }) => type === FRAME.failure && bytesToUtf8(payload)?.includes("secret"));
  return leak ? "tells the peer why" : undefined;
}

describe("the LAN message channel", () => {
  for (const [index, { name, seed }] of seeds.entries()) {
    const cases = fuzzCases(0.01, index > 0);
    rule(
      `[SYNC-4] ${name}: ${cases} exchanges with spoilt frames end the link for a reason, or go on`,
      async () => {
        const rng = createRng(seed).fork("channel");
        const before = process.memoryUsage().rss;
        for (let i = 0; i < cases; i++) {
          const fault = await tryChannel(rng.fork(`${i}`));
          if (fault) throw new Error(`case ${i}: the channel ${fault}`);
        }
        expect(process.memoryUsage().rss - before).toBeLessThan(LEFT_BYTES);
      },
      600_000,
    );
  }
});

describe("chunks of files on the LAN", () => {
  const shared = cidOf(new Uint8Array(8)) as SpaceId;
  const secret = cidOf(new Uint8Array(9)) as SpaceId;
  const peer = "a peer" as PeerId;
  let directory: ScratchDir;
  let store: ContentStore;
  let content: Content;
  let whole: WholeContent;

  beforeAll(async () => {
    directory = scratchDir("link-fuzz");
    const blobs = await openBlobStore(join(directory.path, "blobs"), systemClock);
    const sources = createChunkSources(() => {});
    store = createContentStore({
      ...{ blobs, sources, sealer: createContentSealer(), log: silentLog },
      arrived() {},
      isBusy: () => false,
      gone() {},
    });
    const received = await store.receive(shared, new Response(new Uint8Array(CHUNK_BYTES + 1_000).fill(5)).body);
    if (received.kind !== "stored") throw new Error(received.kind);
    content = await store.seal(shared, { id: new Uint8Array(32), key: new Uint8Array(32).fill(2) }, received);
    whole = (await store.manifest(content))!;
  });
  afterAll(async () => {
    await store.close();
    directory[Symbol.dispose]();
  });

  const goodRequest = (rng: Rng): Uint8Array =>
    encodeCbor({
      space: rng.chance(0.8) ? shared : secret,
      root: content.rootCid,
      level: rng.pick([0, 0, 1, 1, 2]),
      index: rng.pick([0, 1, 2]),
    }).slice();
  /** What is true at a place; undefined where the content has none. */
  const digestOf = ({ level, index }: { level: number; index: number }): Uint8Array | undefined => {
    if (level === 0) return index < 2 ? digestAt(whole.digests, index) : undefined;
    return whole.tree.pages.find(({ position }) => position.level === level && position.index === index)?.digest;
  };

  for (const [index, { name, seed }] of seeds.entries()) {
    const cases = fuzzCases(0.01, index > 0);
    rule(
      `[FILE-7] ${name}: ${cases} spoilt requests are given a chunk of what the peer may have, or nothing`,
      async () => {
        const rng = createRng(seed).fork("requests");
        let looked = 0;
        let given = 0;
        const copied: string[] = [];
        const answer = createChunkServer({
          async sealed(spaceId, request) {
            looked++;
            if (spaceId !== shared || request.root !== content.rootCid) return undefined;
            return { sealed: await store.sealed(content, request), chunks: 2 };
          },
          copied: (spaceId) => copied.push(spaceId),
        });
        for (let i = 0; i < cases; i++) {
          const good = goodRequest(rng);
          const body = rng.chance(0.1) ? good : mutateEncoded(rng, good);
          const before = looked;
          let reply: Uint8Array;
          try {
            reply = await answer(peer, body, async (id) => (id === shared ? shared : undefined));
          } catch (error) {
            expect(error).toBeInstanceOf(RangeError); // no CBOR: the channel says `failed`
            continue;
          }
          expect(looked - before).toBeLessThanOrEqual(1);
          if (reply[0] !== 2) {
            expect([[0], [1]]).toContainEqual([...reply]);
            continue;
          }
          const position = decodeCbor(body) as { space: string; level: number; index: number };
          expect(position.space).toBe(shared);
          expect(sha256(reply.subarray(1))).toEqual(digestOf(position)!);
          given++;
        }
        expect(given).toBeGreaterThan(0);
        expect(new Set(copied)).toEqual(new Set([shared]));
      },
      600_000,
    );

    rule(
      `[FILE-7] ${name}: ${Math.ceil(cases / 25)} spoilt answers are taken for what they should be, or for lies, never for anything else`,
      async () => {
        const rng = createRng(seed).fork("answers");
        const counts = levelCounts(content.size);
        let lies = 0;
        let taken = 0;
        for (let i = 0; i < cases / 25; i++) {
          const position = positionIn(counts, rng.pick([0, 1]), 0);
          const sealed = (await store.sealed(content, position))!;
          const good = concatBytes(Uint8Array.of(2), sealed);
          const reply = rng.chance(0.2) ? good : mutateBytes(rng, good.subarray(0, rng.pick([0, 1, 100, good.length])));
          const sources = createChunkSources(() => lies++);
          const link = {
            ...{ peerId: peer, own: false, signal: new AbortController().signal, sharedSpaces: () => [shared] },
            request: async () => reply,
          } as unknown as PeerLink;
          sources.add(createPeerChunks(link, secret));
          const got = await sources.fetch({ content, position, digest: sha256(sealed) });
          if (got) expect(equalBytes(got, sealed)).toBe(true);
          if (got) taken++;
        }
        expect(taken).toBeGreaterThan(0);
        expect(lies).toBeGreaterThan(0);
      },
      600_000,
    );
  }
});
