import { expect, test } from "bun:test";
import type { Json, JsonObject } from "../../src/protocol/json.ts";
import { loopTurns } from "../../test/support/loop-turns.ts";
import { createStreamHub } from "./stream-hub.ts";
import type { AskedById, HubMessage } from "./stream-messages.ts";

interface Sub {
  id: string;
  path: string;
}

/** One `POST /v1/streams` as the server sees it. */
interface Opened {
  readonly subscriptions: Sub[];
  readonly changes: { add: Sub[]; drop: string[] }[];
  send(event: string, data: Json): void;
  end(): void;
  readonly left: () => boolean;
}

/** A hub, its clock, and a server that the test plays. */
function setUp() {
  let nowMs = 1_000_000;
  const timers = new Set<{ atMs: number; run: () => void }>();
  const opened: Opened[] = [];
  let answer: ((path: string, body: JsonObject) => Response | undefined) | undefined;
  let down = false;
  const gone = new Map<string, () => void>();
  let attempts = 0;

  const hub = createStreamHub({
    nowMs: () => nowMs,
    random: () => 0.999,
    after(ms, run) {
      const timer = { atMs: nowMs + ms, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    tabGone: (tab) => new Promise((resolve) => gone.set(tab, resolve)),
    async fetch(path, init) {
      const body = JSON.parse(init.body as string) as JsonObject;
      if (path === "/v1/streams") attempts++;
      if (down) throw new TypeError("nobody there");
      const refused = answer?.(path, body);
      if (refused) return refused;
      if (path !== "/v1/streams") {
        opened.at(-1)?.changes.push(body as unknown as Opened["changes"][number]);
        return new Response(null, { status: 204 });
      }
      let controller!: ReadableStreamDefaultController<Uint8Array>;
      let left = false;
      const stream = new ReadableStream<Uint8Array>({
        start(made) {
          controller = made;
        },
      });
      init.signal?.addEventListener("abort", () => {
        left = true;
        controller.error(new DOMException("left", "AbortError"));
      });
      const encoder = new TextEncoder();
      opened.push({
        subscriptions: body["subscriptions"] as unknown as Sub[],
        changes: [],
        send: (event, data) => controller.enqueue(encoder.encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)),
        end: () => controller.close(),
        left: () => left,
      });
      return new Response(stream);
    },
  });

  /** Lets time pass in small steps, so that timers run at about their own time. */
  async function pass(ms: number): Promise<void> {
    for (const endMs = nowMs + ms; ; ) {
      await loopTurns(10);
      const due = [...timers].filter(({ atMs }) => atMs <= endMs).toSorted((a, b) => a.atMs - b.atMs)[0];
      nowMs = due ? Math.max(nowMs, due.atMs) : endMs;
      if (!due) return;
      timers.delete(due);
      due.run();
    }
  }
  function tab(name: string) {
    const heard: HubMessage[] = [];
    let wanted: AskedById[] = [];
    const send = (message: Parameters<typeof hub.receive>[0]) => hub.receive(message, (said) => heard.push(said));
    return {
      heard,
      async want(...paths: string[]) {
        wanted = paths.map((path) => ({ id: path, asked: { method: "GET", path } }));
        send({ kind: "announce", tab: name, wanted });
        await loopTurns(10);
      },
      wake: () => send({ kind: "wake", tab: name }),
      die: async () => {
        gone.get(name)?.();
        await loopTurns(10);
      },
      /** What the tab received since, as `id event` or `down`. */
      takeHeard: () =>
        heard
          .splice(0)
          .map((said) =>
            said.kind === "frame" ? `${said.id} ${said.event}` : `${said.kind} ${"id" in said ? said.id : "all"}`,
          ),
    };
  }
  return {
    tab,
    pass,
    opened,
    attempts: () => attempts,
    refuse(make: typeof answer): void {
      answer = make;
    },
    setDown(is: boolean): void {
      down = is;
    },
    sleep(ms: number): void {
      nowMs += ms;
    },
    /** Opens the stream as the server does. */
    ready: async () => {
      opened.at(-1)!.send("ready", { streamId: `S${opened.length}` });
      await loopTurns(10);
    },
  };
}

const frame = (id: string, event: string, data: Json = {}) => ({ id, event, data });

test("[PAGE-3] tabs share one connection; frames go to who asked, adds and drops are told while it is open", async () => {
  const { tab, opened, ready } = setUp();
  const [one, two] = [tab("one"), tab("two")];
  await one.want("/a");
  expect(opened[0]!.subscriptions.map(({ path }) => path)).toEqual(["/a"]);
  await two.want("/a", "/b");
  expect(opened[0]!.changes).toEqual([]);
  await ready();
  expect(opened[0]!.changes.map(({ add, drop }) => [add.map(({ path }) => path), drop])).toEqual([[["/a", "/b"], []]]);
  const [a1, a2] = [opened[0]!.subscriptions[0]!.id, opened[0]!.changes[0]!.add[0]!.id];
  opened[0]!.send("frame", frame(a1, "ready"));
  opened[0]!.send("frame", frame(a2, "snapshot"));
  await loopTurns(10);
  expect([one.takeHeard(), two.takeHeard()]).toEqual([["/a ready"], ["/a snapshot"]]);
  await one.want();
  await two.want("/b", "/c");
  expect(opened[0]!.changes.slice(1).flatMap(({ drop }) => drop)).toEqual([a1, a2]);
  opened[0]!.send("frame", frame(a1, "changes"));
  await loopTurns(10);
  expect([one.takeHeard(), two.takeHeard(), opened.length]).toEqual([[], [], 1]);
});

test("[PAGE-3] what a tab wanted is dropped when it dies, and the connection left when nobody wants anything", async () => {
  const { tab, opened, ready, pass } = setUp();
  const [one, two] = [tab("one"), tab("two")];
  await one.want("/a");
  await ready();
  await two.want("/b");
  await one.die();
  expect(opened[0]!.changes.at(-1)!.drop).toEqual([opened[0]!.subscriptions[0]!.id]);
  await two.want();
  expect(opened[0]!.left()).toBe(false);
  await pass(3_000);
  expect([opened[0]!.left(), opened.length]).toEqual([true, 1]);
  await two.want("/b");
  expect(opened.length).toBe(2);
});

test("[PAGE-3] one attempt a browser, rarer and rarer up to 30 s; a tab that wakes tries at once", async () => {
  const { tab, opened, attempts, setDown, pass, ready } = setUp();
  const [one, two] = [tab("one"), tab("two")];
  setDown(true);
  await one.want("/a");
  await two.want("/b");
  expect(attempts()).toBe(1);
  await pass(60_000);
  const early = attempts();
  expect(early).toBeLessThan(9);
  await pass(300_000);
  expect(attempts() - early).toBeWithin(9, 12);
  setDown(false);
  const before = attempts();
  one.wake();
  await loopTurns(10);
  expect([attempts() - before, opened.length]).toEqual([1, 1]);
  expect(opened[0]!.subscriptions.map(({ path }) => path)).toEqual(["/a", "/b"]);
  await ready();
  one.takeHeard();
  opened[0]!.end();
  await pass(1_500);
  expect([opened.length, one.takeHeard()]).toEqual([2, ["down all"]]);
});

test("[PAGE-3] 60 s without a byte and a sleep open it anew; comments are bytes", async () => {
  const { tab, opened, pass, ready, sleep } = setUp();
  const one = tab("one");
  await one.want("/a");
  await ready();
  for (let n = 0; n < 4; n++) {
    await pass(25_000);
    opened[0]!.send("frame", frame("nobody", "x"));
    await loopTurns(10);
  }
  expect(opened.length).toBe(1);
  await pass(70_000);
  expect([opened[0]!.left(), opened.length]).toEqual([true, 2]);
  await ready();
  sleep(100_000);
  await pass(10_000);
  expect([opened[1]!.left(), opened.length]).toEqual([true, 3]);
});

test("[PAGE-3] what the server ends is asked for again, what it refuses is not; others go on", async () => {
  const { tab, opened, ready, pass } = setUp();
  const one = tab("one");
  await one.want("/over", "/gone", "/busy", "/fine");
  await ready();
  const [over, gone, busy] = opened[0]!.subscriptions.map(({ id }) => id);
  opened[0]!.send("frame", frame(over!, "closed", { reason: "overflow" }));
  opened[0]!.send("frame", frame(gone!, "error", { error: { code: "object.not_found", message: "no" } }));
  opened[0]!.send("frame", frame(busy!, "error", { error: { code: "server.unavailable", message: "later" } }));
  await loopTurns(10);
  expect(one.takeHeard()).toEqual(["down /over", "refused /gone", "down /busy"]);
  await pass(1_100);
  expect(opened[0]!.changes.flatMap(({ add }) => add.map(({ path }) => path))).toEqual(["/over", "/busy"]);
  expect(opened.length).toBe(1);
});

test("[PAGE-3] a subscription that the server does not know is refused alone, in the first request and later", async () => {
  const { tab, opened, ready, refuse } = setUp();
  const one = tab("one");
  refuse((_, body) => {
    const asked = (body["subscriptions"] ?? body["add"]) as unknown as Sub[];
    const index = asked.findIndex(({ path }) => path.startsWith("/bad"));
    if (index === -1) return undefined;
    const error = { code: "request.invalid_field", message: "no", details: { field: `subscriptions[${index}].path` } };
    return Response.json({ error }, { status: 400 });
  });
  await one.want("/a", "/bad1");
  await ready();
  await one.want("/a", "/bad1", "/bad2", "/b");
  expect(one.takeHeard()).toEqual(["refused /bad1", "down all", "refused /bad2"]);
  expect(opened[0]!.changes.flatMap(({ add }) => add.map(({ path }) => path))).toEqual(["/b"]);
});

test("[PAGE-3] a stream that is not there any more is opened anew", async () => {
  const { tab, opened, ready, refuse, pass } = setUp();
  const one = tab("one");
  await one.want("/a");
  await ready();
  refuse((path) =>
    path === "/v1/streams"
      ? undefined
      : Response.json({ error: { code: "stream.not_found", message: "no", details: {} } }, { status: 404 }),
  );
  await one.want("/a", "/b");
  await pass(1_500);
  expect(opened.map(({ subscriptions }) => subscriptions.map(({ path }) => path))).toEqual([["/a"], ["/a", "/b"]]);
});
