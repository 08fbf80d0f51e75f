import { expect, test } from "bun:test";
import { encodeFrame } from "../protocol/sse-frames.ts";
import { Multiplex } from "./multiplex.ts";
import type { InnerStreams } from "./stream/inner-streams.ts";
import type { StreamFeed, StreamSink } from "./stream/stream-source.ts";

interface Opened {
  readonly id: string;
  readonly sink: StreamSink;
  /** Lets its source's start finish. */
  begin(feed?: Partial<StreamFeed>): Promise<void>;
  stops: number;
}

/** A stream whose sources the test controls; `limits` in bytes and openings. */
function multiplexed(limits = { bytes: 1000, openings: 4 }) {
  const opened: Opened[] = [];
  const inner: InnerStreams = {
    fault: () => undefined,
    async open({ id, path }, outer) {
      if (path === "/refused") return Response.json({ error: { code: "object.not_found" } }, { status: 404 });
      await outer.carry({
        capacity: 1000,
        overflow: "close",
        start: async (sink) => {
          const started = Promise.withResolvers<StreamFeed>();
          const entry: Opened = {
            id,
            sink,
            async begin(feed = {}) {
              started.resolve({ ...feed, stop: () => void entry.stops++ });
              await Bun.sleep(0);
            },
            stops: 0,
          };
          opened.push(entry);
          return started.promise;
        },
      });
      return new Response(null);
    },
  };
  let wakes = 0;
  const stream = new Multiplex({ streamId: "S", inner, limits });
  stream.onChange(() => wakes++);
  const decoder = new TextDecoder();
  /** Takes everything there is, as `id event data` or, for the stream's own frames, `event data`. */
  const drain = (): string[] => {
    const lines: string[] = [];
    for (let chunk = stream.take(); chunk; chunk = stream.take()) {
      for (const block of decoder.decode(chunk).split("\n\n").slice(0, -1)) {
        const [, event, json] = /^event: (\w+)\ndata: (.*)$/s.exec(block)!;
        const data = JSON.parse(json!.replaceAll("\ndata: ", "\n")) as Record<string, unknown>;
        lines.push(
          event === "frame"
            ? `${data["id"]} ${data["event"]} ${JSON.stringify(data["data"])}`
            : `${event} ${JSON.stringify(data)}`,
        );
      }
    }
    return lines;
  };
  const add = async (...ids: string[]) => {
    stream.add(ids.map((id) => ({ id, method: "GET", path: id.startsWith("bad") ? "/refused" : "/x" })));
    await Bun.sleep(0);
  };
  const get = (id: string): Opened => opened.find((one) => one.id === id)!;
  return { stream, opened, add, get, drain, wakes: () => wakes };
}

const sized = (name: string, bytes: number): Uint8Array =>
  encodeFrame(name, "x".repeat(bytes - encodeFrame(name, "").length));

test("[LIVE-5] ready carries the stream's id; a subscription has its own ready, frames and closed", async () => {
  const { stream, add, get, drain } = multiplexed();
  expect(drain()).toEqual(['ready {"streamId":"S"}']);
  await add("a");
  get("a").sink.send(encodeFrame("snapshot", { records: ['"\n'] }));
  expect(drain()).toEqual([]);
  await get("a").begin();
  expect(drain()).toEqual(["a ready {}", 'a snapshot {"records":["\\"\\n"]}']);
  get("a").sink.close("drifted");
  expect([...stream.ids]).toEqual(["a"]);
  expect(drain()).toEqual(['a closed {"reason":"drifted"}']);
  expect([[...stream.ids], get("a").stops]).toEqual([[], 1]);
});

test("[LIVE-5] a refusal is a frame with the error's envelope, and ends that subscription alone", async () => {
  const { stream, add, get, drain } = multiplexed();
  drain();
  await add("bad", "a");
  await get("a").begin();
  expect(drain()).toEqual(['bad error {"error":{"code":"object.not_found"}}', "a ready {}"]);
  expect([...stream.ids]).toEqual(["a"]);
});

test("[LIVE-5] subscriptions take turns, one frame each", async () => {
  const { add, get, drain } = multiplexed();
  drain();
  await add("a", "b", "c");
  for (const id of ["a", "b", "c"]) await get(id).begin();
  drain();
  for (const n of [1, 2, 3]) get("a").sink.send(encodeFrame("e", n));
  get("b").sink.send(encodeFrame("e", 1));
  get("c").sink.send(encodeFrame("e", 1));
  get("c").sink.send(encodeFrame("e", 2));
  expect(drain()).toEqual(["a e 1", "b e 1", "c e 1", "a e 2", "c e 2", "a e 3"]);
});

test("[LIVE-7] four are opened at a time, in the order asked; the next when the first frames of one were taken", async () => {
  const { opened, add, get, drain } = multiplexed({ bytes: 1 << 20, openings: 4 });
  drain();
  await add("a", "b", "c", "d", "e", "f", "g");
  const ids = () => opened.map(({ id }) => id).join("");
  expect(ids()).toBe("abcd");
  get("b").sink.send(sized("snapshot", 20_000));
  await get("b").begin();
  expect(ids()).toBe("abcd");
  drain();
  await Bun.sleep(0);
  expect(ids()).toBe("abcde");
  // A light subscription delays no other.
  get("c").sink.send(sized("snapshot", 100));
  await get("c").begin();
  expect(ids()).toBe("abcdef");
});

test("[LIVE-7] beyond the bytes of a stream the subscription with most of them overflows, and hurts no other", async () => {
  const { add, get, drain } = multiplexed();
  drain();
  await add("a", "b", "c");
  for (const id of ["a", "b", "c"]) await get(id).begin();
  drain();
  get("a").sink.send(sized("e", 300));
  for (let n = 0; n < 4; n++) get("b").sink.send(sized("e", 125));
  get("c").sink.send(sized("e", 250));
  const taken = drain();
  expect(taken.filter((line) => line.startsWith("b"))).toEqual(['b closed {"reason":"overflow"}']);
  expect(taken.filter((line) => !line.startsWith("b")).map((line) => line.slice(0, 3))).toEqual(["a e", "c e"]);
  get("a").sink.send(encodeFrame("e", 1));
  expect(drain()).toEqual(["a e 1"]);
});

test("[LIVE-7] a single frame larger than all of it passes", async () => {
  const { add, get, drain } = multiplexed();
  drain();
  await add("a", "b");
  for (const id of ["a", "b"]) await get(id).begin();
  drain();
  get("a").sink.send(sized("e", 5000));
  get("b").sink.send(sized("e", 500));
  expect(drain().map((line) => line.length > 400)).toEqual([true, true]);
});

test("[LIVE-6] nothing of a dropped subscription is taken, whatever it has waiting or is doing", async () => {
  const { stream, add, get, drain } = multiplexed();
  drain();
  await add("open", "opening", "a");
  await get("open").begin();
  await get("a").begin();
  get("open").sink.send(encodeFrame("e", 1));
  stream.drop(["open", "opening", "nobody"]);
  await get("opening").begin();
  get("open").sink.send(encodeFrame("e", 2));
  get("opening").sink.send(encodeFrame("e", 3));
  get("a").sink.send(encodeFrame("e", 4));
  expect(drain()).toEqual(["a ready {}", "a e 4"]);
  expect([get("open").stops, get("opening").stops]).toEqual([1, 1]);
});

test("[LIVE-5] an end is said by every subscription, then by the stream", async () => {
  const { stream, add, get, drain } = multiplexed();
  drain();
  await add("open", "opening");
  await get("open").begin();
  drain();
  get("open").sink.send(encodeFrame("e", 1));
  stream.close("server_shutdown");
  await get("opening").begin();
  const reason = '{"reason":"server_shutdown"}';
  expect(drain()).toEqual(["open e 1", `opening closed ${reason}`, `open closed ${reason}`, `closed ${reason}`]);
  expect([stream.finished, get("open").stops, get("opening").stops]).toEqual([true, 1, 1]);
});
