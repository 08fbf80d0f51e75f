import { connect, createServer, type Socket } from "node:net";

/**
 * A loopback proxy that can misbehave on demand, and remembers what passed through it.
 * Directions are seen from the client: `up` to the target, `down` back.
 */
export interface TcpProxy extends AsyncDisposable {
  readonly port: number;
  /** What passed, up to `captureBytes`: one entry for each direction of each connection, in its order. */
  captured(): Buffer[];
  /** Whether bytes of a direction are dropped instead of passed on. */
  drop(direction: "up" | "down", on: boolean): void;
  /** Whether bytes of a direction are held back; they pass when it ends. */
  stall(direction: "up" | "down", on: boolean): void;
  /** How much later the bytes of both directions pass; 0 passes them at once. */
  delay(ms: number): void;
  /** After so many more bytes of a direction the connection they came through is reset, in the midst of a frame. Once. */
  cutAfter(direction: "up" | "down", bytes: number): void;
  /** Resets every connection. New ones are taken. */
  sever(): void;
  /** Refuses new connections and resets those there are, until called with false. */
  block(on: boolean): void;
  connections(): number;
}

export async function startTcpProxy(
  targetPort: number,
  options: { captureBytes?: number; host?: string } = {},
): Promise<TcpProxy> {
  const captures: Buffer[][] = [];
  let captureLeft = options.captureBytes ?? 0;
  const sockets = new Set<Socket>();
  const stalled = { up: new Set<Socket>(), down: new Set<Socket>() };
  const dropping = { up: false, down: false };
  const stalling = { up: false, down: false };
  const cutIn: { up: number | undefined; down: number | undefined } = { up: undefined, down: undefined };
  let delayMs = 0;
  let blocked = false;

  const pipe = (from: Socket, to: Socket, direction: "up" | "down") => {
    const capture: Buffer[] = [];
    if (captureLeft > 0) captures.push(capture);
    let lastDueMs = 0;
    const pass = (data: Buffer) => {
      if (to.destroyed || to.write(data)) return;
      from.pause();
      to.once("drain", () => {
        if (!stalling[direction]) from.resume();
      });
    };
    /** Order is kept when the delay gets shorter. */
    const passLater = (data: Buffer) => {
      const now = performance.now();
      if (delayMs === 0 && lastDueMs <= now) return pass(data);
      lastDueMs = Math.max(lastDueMs, now + delayMs);
      setTimeout(() => pass(data), lastDueMs - now);
    };
    from.on("data", (data: Buffer) => {
      if (captureLeft > 0) {
        capture.push(Buffer.from(data.subarray(0, captureLeft)));
        captureLeft -= data.length;
      }
      if (dropping[direction]) return;
      const left = cutIn[direction];
      if (left !== undefined && left <= data.length) {
        cutIn[direction] = undefined;
        if (!to.destroyed) to.end(data.subarray(0, left), () => from.resetAndDestroy());
        return;
      }
      if (left !== undefined) cutIn[direction] = left - data.length;
      passLater(data);
    });
    from.on("close", () => {
      sockets.delete(from);
      stalled[direction].delete(from);
      to.destroy();
    });
    from.on("error", () => to.destroy()); // a reset on one side is a reset on the other
    stalled[direction].add(from);
    if (stalling[direction]) from.pause();
  };
  const server = createServer((client) => {
    if (blocked) return void client.resetAndDestroy();
    const target = connect(targetPort, options.host ?? "127.0.0.1");
    client.setNoDelay(true);
    target.setNoDelay(true);
    sockets.add(client);
    sockets.add(target);
    pipe(client, target, "up");
    pipe(target, client, "down");
  });
  await new Promise<void>((done, failed) => server.once("error", failed).listen(0, "127.0.0.1", done));
  const address = server.address();
  if (!address || typeof address === "string") throw new Error("no port");
  const sever = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: address.port,
    captured: () => captures.map((capture) => Buffer.concat(capture)),
    drop: (direction, on) => {
      dropping[direction] = on;
    },
    stall: (direction, on) => {
      stalling[direction] = on;
      for (const socket of stalled[direction]) {
        if (on) socket.pause();
        else socket.resume();
      }
    },
    delay: (ms) => {
      delayMs = ms;
    },
    cutAfter: (direction, bytes) => {
      cutIn[direction] = bytes;
    },
    sever,
    block: (on) => {
      blocked = on;
      if (on) sever();
    },
    connections: () => sockets.size / 2,
    [Symbol.asyncDispose]: async () => {
      blocked = true;
      const closed = new Promise<void>((done) => server.close(() => done()));
      sever();
      await closed;
    },
  };
}
