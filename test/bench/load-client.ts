/**
 * The load generator, a process of its own: keep-alive connections, one request in flight on each, no pipelining.
 * Reads a plan from argv, writes a result to stdout. Fails on the first answer that is not a 200.
 */
import type { Socket } from "bun";
import { type LoadPlan, type LoadResult, requestBody } from "./workload.ts";

interface Connection {
  sentAt: number;
  received: string;
}

const plan = JSON.parse(process.argv[2]!) as LoadPlan;
const latenciesMs: number[] = [];
let sent = 0;
let measuring = false;
let over = false;

const encode = (n: number): string => {
  const body = requestBody(plan, n);
  return (
    `POST ${plan.path} HTTP/1.1\r\nHost: 127.0.0.1:${plan.port}\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
};
const sendNext = (socket: Socket<Connection>): void => {
  socket.data = { sentAt: performance.now(), received: "" };
  socket.write(encode(sent++));
};

/** Whether the text holds a whole response: by Content-Length or, when chunked, by its last chunk. */
function isWhole(text: string): boolean {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return false;
  const head = text.slice(0, end).toLowerCase();
  const length = /content-length: (\d+)/.exec(head);
  if (length) return Buffer.byteLength(text) - Buffer.byteLength(text.slice(0, end + 4)) >= Number(length[1]);
  return text.endsWith("\r\n0\r\n\r\n") || text.endsWith("\r\n\r\n0\r\n\r\n");
}

const sockets = await Promise.all(
  Array.from({ length: plan.connections }, () =>
    Bun.connect<Connection>({
      hostname: "127.0.0.1",
      port: plan.port,
      data: { sentAt: 0, received: "" },
      socket: {
        data: (socket, chunk) => {
          socket.data.received += chunk.toString("utf8");
          if (!isWhole(socket.data.received)) return;
          if (!socket.data.received.startsWith("HTTP/1.1 200")) {
            console.error(socket.data.received.slice(0, 800));
            process.exit(1);
          }
          if (measuring) latenciesMs.push(performance.now() - socket.data.sentAt);
          if (!over) sendNext(socket);
        },
        close: () => {
          if (over) return;
          console.error("the server closed a connection");
          process.exit(1);
        },
      },
    }),
  ),
);
for (const socket of sockets) sendNext(socket);
await Bun.sleep(plan.warmupMs);
measuring = true;
const startedAt = performance.now();
await Bun.sleep(plan.measureMs);
measuring = false;
over = true;
const seconds = (performance.now() - startedAt) / 1000;
latenciesMs.sort((a, b) => a - b);
const at = (share: number): number =>
  latenciesMs[Math.min(latenciesMs.length - 1, Math.floor(latenciesMs.length * share))] ?? 0;
const result: LoadResult = {
  requests: latenciesMs.length,
  perSecond: latenciesMs.length / seconds,
  p50Ms: at(0.5),
  p99Ms: at(0.99),
};
console.log(JSON.stringify(result));
process.exit(0);
