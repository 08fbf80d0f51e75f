/** A plain TCP connection, for requests that no well-behaved client would send. */
import { connect } from "node:net";

export interface RawSocket extends AsyncDisposable {
  write(data: string | Uint8Array): void;
  /** Half-closes the sending side. */
  end(): void;
  /** Everything received until `marker` occurs; throws after `timeoutMs` or when the connection ends without it. */
  readUntil(marker: string, timeoutMs?: number): Promise<string>;
  /** Resolves with everything received once the server has closed the connection. */
  closed(timeoutMs?: number): Promise<string>;
  received(): string;
  pause(): void;
  resume(): void;
  destroy(): void;
}

export async function openSocket(port: number, host = "127.0.0.1"): Promise<RawSocket> {
  const socket = connect({ port, host });
  let text = "";
  let over = false;
  const waiting: (() => void)[] = [];
  const wake = (): void => {
    for (const resume of waiting.splice(0)) resume();
  };
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("utf8");
    wake();
  });
  socket.on("error", () => {
    over = true; // a reset is one of the answers these tests expect; readUntil reports it
    wake();
  });
  socket.on("close", () => {
    over = true;
    wake();
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", () => resolve());
    socket.once("error", reject);
  });

  const waitFor = async (condition: () => boolean, what: string, timeoutMs: number): Promise<void> => {
    const deadline = Date.now() + timeoutMs;
    while (!condition()) {
      const left = deadline - Date.now();
      if (left <= 0)
        throw new Error(`waited ${timeoutMs} ms for ${what}; received ${JSON.stringify(text.slice(0, 400))}`);
      await Promise.race([new Promise<void>((resolve) => waiting.push(resolve)), Bun.sleep(left)]);
    }
  };
  return {
    write: (data) => {
      socket.write(data);
    },
    end: () => {
      socket.end();
    },
    readUntil: async (marker, timeoutMs = 10_000) => {
      await waitFor(() => over || text.includes(marker), JSON.stringify(marker), timeoutMs);
      if (!text.includes(marker)) throw new Error(`closed before ${marker}: ${JSON.stringify(text.slice(0, 400))}`);
      return text;
    },
    closed: async (timeoutMs = 10_000) => {
      await waitFor(() => over, "the server to close the connection", timeoutMs);
      return text;
    },
    received: () => text,
    pause: () => {
      socket.pause();
    },
    resume: () => {
      socket.resume();
    },
    destroy: () => {
      socket.destroy();
    },
    [Symbol.asyncDispose]: async () => {
      socket.destroy();
    },
  };
}
