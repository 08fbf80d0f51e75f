import type { Socket } from "node:net";

/** Seen from the client: `up` to the target, `down` back. */
type Direction = "up" | "down";

/** What a line can be made to do. */
export interface LineFaults {
  /** Whether bytes of a direction are dropped instead of passed on. */
  drop(direction: Direction, on: boolean): void;
  /** Whether bytes of a direction are held back; they pass when it ends. */
  stall(direction: Direction, on: boolean): void;
  /** How much later the bytes of both directions pass; 0 passes them at once. */
  delay(ms: number): void;
  /**
   * After so many more bytes of a direction the connection they came through breaks, in the midst of a frame: whoever
   * receives them sees an orderly end, or a reset. Once.
   */
  cutAfter(direction: Direction, bytes: number, how?: "end" | "reset"): void;
  /** So many bytes of a direction on, one bit is another. Once. */
  corruptAfter(direction: Direction, bytes: number): void;
  /** Resets every connection. New ones are taken. */
  sever(): void;
  /** Refuses new connections and resets those there are, until called with false. */
  block(on: boolean): void;
  connections(): number;
  /** How many connections `cutAfter` and `corruptAfter` have broken so far. */
  broken(): number;
}

/** A way for bytes between sockets that can misbehave on demand, and remembers what passed through it. */
export interface TcpLine extends LineFaults {
  /** Carries what passes between a client that came and the target that `dial` opens for it. */
  carry(client: Socket, dial: () => Socket): void;
  /** What passed, up to `captureBytes`: one entry for each direction of each connection, in its order. */
  captured(): Buffer[];
}

export function createTcpLine(captureBytes = 0): TcpLine {
  const captures: Buffer[][] = [];
  let captureLeft = captureBytes;
  const sockets = new Set<Socket>();
  const stalled = { up: new Set<Socket>(), down: new Set<Socket>() };
  const dropping = { up: false, down: false };
  const stalling = { up: false, down: false };
  interface Strike {
    left: number;
    how: "end" | "reset" | "corrupt";
  }
  const strikes: { up: Strike | undefined; down: Strike | undefined } = { up: undefined, down: undefined };
  let delayMs = 0;
  let blocked = false;
  let broken = 0;

  /** The bytes as they are to pass; undefined when the connection broke with them. */
  const struck = (data: Buffer, from: Socket, to: Socket, direction: Direction): Buffer | undefined => {
    const strike = strikes[direction];
    if (!strike) return data;
    if (strike.left > data.length) {
      strike.left -= data.length;
      return data;
    }
    strikes[direction] = undefined;
    broken++;
    const at = Math.max(0, strike.left - 1);
    if (strike.how === "corrupt") {
      const spoilt = Buffer.from(data);
      spoilt[at]! ^= 1;
      return spoilt;
    }
    const [broke, last] = [strike.how === "reset" ? () => to.resetAndDestroy() : () => {}, data.subarray(0, at + 1)];
    const end = () => {
      broke();
      from.resetAndDestroy();
    };
    if (to.destroyed) end();
    else if (strike.how === "reset") to.write(last, end);
    else to.end(last, end);
    return undefined;
  };

  const pipe = (from: Socket, to: Socket, direction: Direction) => {
    const capture: Buffer[] = [];
    if (captureLeft > 0) captures.push(capture);
    let lastDueMs = 0;
    const waiting: Buffer[] = [];
    const pass = (data: Buffer) => {
      if (to.destroyed || to.write(data)) return;
      from.pause();
      to.once("drain", () => {
        if (!stalling[direction]) from.resume();
      });
    };
    /** Order is kept when the delay gets shorter; timers of one moment do not keep it by themselves. */
    const passLater = (data: Buffer) => {
      const now = performance.now();
      if (delayMs === 0 && waiting.length === 0) return pass(data);
      waiting.push(data);
      lastDueMs = Math.max(lastDueMs, now + delayMs);
      setTimeout(() => pass(waiting.shift()!), lastDueMs - now);
    };
    from.on("data", (data: Buffer) => {
      if (captureLeft > 0) {
        capture.push(Buffer.from(data.subarray(0, captureLeft)));
        captureLeft -= data.length;
      }
      if (dropping[direction]) return;
      const passing = struck(data, from, to, direction);
      if (passing) passLater(passing);
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
  const sever = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    carry: (client, dial) => {
      if (blocked) return void client.resetAndDestroy();
      const target = dial();
      for (const socket of [client, target]) {
        socket.setNoDelay(true);
        sockets.add(socket);
      }
      pipe(client, target, "up");
      pipe(target, client, "down");
    },
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
    cutAfter: (direction, bytes, how = "end") => {
      strikes[direction] = { left: bytes, how };
    },
    corruptAfter: (direction, bytes) => {
      strikes[direction] = { left: bytes, how: "corrupt" };
    },
    sever,
    block: (on) => {
      blocked = on;
      if (on) sever();
    },
    connections: () => sockets.size / 2,
    broken: () => broken,
  };
}

type Mendable = "delay" | "stall" | "drop" | "block" | "sever";

/** A line as it should be: nothing is held back, dropped or delayed; connections are made anew. Also one far away. */
export async function mend(
  line: {
    [Fault in Mendable]: (...args: Parameters<LineFaults[Fault]>) => void | Promise<void>;
  },
): Promise<void> {
  await line.delay(0);
  for (const direction of ["up", "down"] as const) {
    await line.stall(direction, false);
    await line.drop(direction, false);
  }
  await line.block(false);
  await line.sever(); // a stream from which bytes were taken is none any more
}
