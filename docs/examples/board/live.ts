import type { Schemas } from "./api.ts";

type Subscription = Schemas["SubscriptionRequest"];
export type Frame = Schemas["SubscriptionFrame"];

/** A connection that says nothing for so long is dead: the server sends a comment every 25 seconds. */
const SILENCE_MS = 60_000;
const MAX_WAIT_MS = 30_000;

/**
 * Follows the subscriptions over one connection, which is opened again whenever it ends, until `signal` says stop. After each
 * opening every subscription begins anew, with a snapshot.
 */
export async function follow(
  server: string,
  subscriptions: readonly Subscription[],
  onFrame: (frame: Frame) => void,
  onLost: (reason: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let waitMs = 500;
  while (!signal.aborted) {
    try {
      for await (const frame of frames(server, subscriptions, signal)) {
        waitMs = 500;
        onFrame(frame);
      }
    } catch (error) {
      if (!signal.aborted) onLost(error instanceof Error ? error.message : String(error));
    }
    if (!signal.aborted) await sleep(waitMs * (0.5 + Math.random()), signal);
    waitMs = Math.min(waitMs * 2, MAX_WAIT_MS);
  }
}

/** The frames of one connection. Throws when it breaks off, or when a subscription is refused or ended. */
async function* frames(
  server: string,
  subscriptions: readonly Subscription[],
  stop: AbortSignal,
): AsyncGenerator<Frame> {
  const silence = new AbortController();
  const reply = await fetch(`${server}/v1/streams`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ subscriptions }),
    signal: AbortSignal.any([stop, silence.signal]),
  });
  if (!reply.ok || !reply.body) throw new Error(`the server answered ${reply.status}`);
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let rest = "";
  try {
    for (;;) {
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      const { done, value } = await reader.read();
      clearTimeout(timer);
      if (done) throw new Error("the connection ended");
      const events = (rest + value).split("\n\n");
      rest = events.pop() ?? "";
      for (const text of events) {
        const event = parse(text);
        if (event?.event === "closed") throw new Error(`the server ended the connection: ${event.data.reason}`);
        if (event?.event !== "frame") continue;
        if (event.data.event === "error") throw new Error(event.data.data.error.message);
        if (event.data.event === "closed") throw new Error(`the subscription ended: ${event.data.data.reason}`);
        yield event.data;
      }
    }
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}

/** An event of the stream, as text; undefined for a comment. */
function parse(text: string): Schemas["OpenStreamsEvent"] | undefined {
  const lines = text.split("\n");
  const field = (name: string) =>
    lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2));
  const [event] = field("event");
  if (event === undefined) return undefined;
  return JSON.parse(`{"event":${JSON.stringify(event)},"data":${field("data").join("\n")}}`);
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
