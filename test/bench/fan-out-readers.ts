/**
 * Readers of a live window, in a process of their own: so many streams of one request. Prints a line when all have their
 * snapshot, and one with the time (Unix milliseconds) when all have their n-th `changes` frame.
 *
 * argv: port, path, body, number of streams.
 */
import type { Socket } from "bun";

interface Reader {
  /** What came of a frame that is not whole. */
  rest: string;
  changes: number;
}

const [port, path, body, countText] = process.argv.slice(2) as [string, string, string, string];
const count = Number(countText);
const now = (): number => performance.timeOrigin + performance.now();
const had: number[] = [];
let snapshots = 0;

function take(socket: Socket<Reader>, text: string): void {
  const blocks = (socket.data.rest + text).split("\n\n");
  socket.data.rest = blocks.pop() ?? "";
  for (const block of blocks) {
    if (block.includes("event: snapshot") && ++snapshots === count) console.log("snapshots");
    if (block.includes("event: closed")) throw new Error(`a stream ended: ${block}`);
    if (!block.includes("event: changes")) continue;
    const nth = socket.data.changes++;
    had[nth] = (had[nth] ?? 0) + 1;
    if (had[nth] === count) console.log(now());
  }
}

const head =
  `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
for (let opened = 0; opened < count; opened++)
  await Bun.connect<Reader>({
    hostname: "127.0.0.1",
    port: Number(port),
    data: { rest: "", changes: 0 },
    socket: {
      open: (socket) => void socket.write(head),
      data: (socket, chunk) => take(socket, chunk.toString("utf8")),
      close: () => process.exit(1),
    },
  });
