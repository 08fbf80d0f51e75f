/** A loopback proxy before a nats-server that reads along: it counts what a client asks, and can end it at any message. */
import { createServer, connect as dial, type Socket } from "node:net";

/** When the client is to be struck down. */
interface NatsStrike {
  /** Which message that concerns it, counted from now on: 1 is the next. */
  readonly at: number;
  /** Whether the server still gets that message; its answer reaches nobody. */
  readonly isPassed: boolean;
  /** Called in that moment. Nothing passes any more, either way, on connections there are. */
  readonly strike: () => void;
}

interface NatsTraffic {
  /** What clients published: requests, appends, events. */
  messages: number;
  /** Bytes on the wire, in both directions. */
  bytes: number;
}

export interface NatsProxy extends AsyncDisposable {
  readonly url: string;
  /** All that passed so far. */
  traffic(): NatsTraffic;
  /** Everything that clients sent and got, connection by connection. */
  captured(): Buffer[];
  /** Tags of logs that clients have named. */
  tags(): ReadonlySet<string>;
  /** Arms a strike at messages that name a log whose tag is not one of these. Answers whether it came, when asked. */
  arm(strike: NatsStrike, except: ReadonlySet<string>): () => boolean;
  /** Ends all connections, and refuses new ones until called with false. */
  block(on: boolean): void;
}

const LINE_END = Buffer.from("\r\n");
const TAG = /svc\.log\.\d+\.([a-z2-7]{26})/gi;

/** The frames that a client's bytes are made of: each is whole, its payload with it. */
function createFrames() {
  let held = Buffer.alloc(0);
  return (data: Buffer): Buffer[] => {
    held = Buffer.concat([held, data]);
    const frames: Buffer[] = [];
    for (;;) {
      const lineEnd = held.indexOf(LINE_END);
      if (lineEnd < 0) return frames;
      const line = held.subarray(0, lineEnd).toString("latin1");
      const payload = /^H?PUB /i.test(line) ? Number(line.slice(line.lastIndexOf(" ") + 1)) + LINE_END.length : 0;
      const end = lineEnd + LINE_END.length + payload;
      if (held.length < end) return frames;
      frames.push(held.subarray(0, end));
      held = held.subarray(end);
    }
  };
}

const isMessage = (frame: Buffer): boolean => /^H?PUB /i.test(frame.subarray(0, 5).toString("latin1"));
const tagsOf = (frame: Buffer): string[] => [...frame.toString("latin1").matchAll(TAG)].map(([, tag]) => tag!);

export async function startNatsProxy(natsPort: number): Promise<NatsProxy> {
  const sockets = new Set<Socket>();
  const traffic: NatsTraffic = { messages: 0, bytes: 0 };
  const captures: Buffer[][] = [];
  const tags = new Set<string>();
  let armed: (NatsStrike & { except: ReadonlySet<string>; seen: number }) | undefined;
  let isBlocked = false;

  /** Whether this frame passes, and the client is struck by it. */
  const judge = (frame: Buffer): { passes: boolean; strikes: boolean } => {
    if (!isMessage(frame)) return { passes: true, strikes: false };
    traffic.messages++;
    const named = tagsOf(frame);
    for (const tag of named) tags.add(tag);
    if (!armed || named.every((tag) => armed!.except.has(tag)) || ++armed.seen < armed.at)
      return { passes: true, strikes: false };
    const { isPassed, strike } = armed;
    armed = undefined;
    strike();
    return { passes: isPassed, strikes: true };
  };

  const server = createServer((client) => {
    if (isBlocked) return void client.destroy();
    const target = dial(natsPort, "127.0.0.1");
    const capture: Buffer[] = [];
    captures.push(capture);
    const framesOf = createFrames();
    let isStruck = false;
    for (const [socket, other] of [
      [client, target],
      [target, client],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => other.destroy()); // a reset on one side is a reset on the other
      socket.on("close", () => {
        sockets.delete(socket);
        if (socket === client && isStruck) target.end();
        else other.destroy();
      });
    }
    const note = (data: Buffer) => {
      traffic.bytes += data.length;
      capture.push(Buffer.from(data));
    };
    client.on("data", (data: Buffer) => {
      note(data);
      for (const frame of framesOf(data)) {
        if (isStruck) return;
        const { passes, strikes } = judge(frame);
        if (passes && !target.write(frame)) pauseUntilDrained(client, target);
        isStruck ||= strikes;
      }
    });
    target.on("data", (data: Buffer) => {
      if (isStruck) return;
      note(data);
      if (!client.write(data)) pauseUntilDrained(target, client);
    });
  });
  await new Promise<void>((done, failed) => server.once("error", failed).listen(0, "127.0.0.1", done));
  const address = server.address();
  if (!address || typeof address === "string") throw new Error("no port");
  const block = (on: boolean): void => {
    isBlocked = on;
    if (on) for (const socket of sockets) socket.destroy();
  };
  return {
    url: `nats://127.0.0.1:${address.port}`,
    traffic: () => ({ ...traffic }),
    captured: () => captures.map((capture) => Buffer.concat(capture)),
    tags: () => tags,
    arm(strike, except) {
      const mine = { ...strike, except, seen: 0 };
      armed = mine;
      return () => {
        const came = armed !== mine;
        if (!came) armed = undefined;
        return came;
      };
    },
    block,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise<void>((done) => server.close(() => done()));
      block(true);
      await closed;
    },
  };
}

function pauseUntilDrained(from: Socket, to: Socket): void {
  from.pause();
  to.once("drain", () => from.resume());
}
