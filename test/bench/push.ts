/**
 * `bun test/bench/push.ts [messages]`: whether sending a chat message takes longer where a push node is configured. Servers
 * without one, with one, and with one that swallows everything take turns in the same minute. The second one without says how
 * far two that do the same differ on this machine.
 */
import { createServer } from "node:net";
import { startFakeFcm } from "../support/push/fake-fcm.ts";
import { startNode } from "../support/push/node.ts";
import { pushAccount } from "../support/push/push-account.ts";
import { createObject, createSpace } from "../support/server/fixtures.ts";
import { type RunningServer, startServer } from "../support/server/server.ts";
import { type Line, median, milliseconds, renderTable } from "./report.ts";

const MESSAGES = Number(process.argv[2] ?? 300);
const TURNS = 5;
const AT_ONCE = 8;

const fcm = startFakeFcm();
const node = await startNode({ fcm });
const hole = createServer(() => {});
await new Promise<void>((resolve) => hole.listen(0, "127.0.0.1", resolve));
const holeAddress = hole.address();
const holePort = holeAddress !== null && typeof holeAddress === "object" ? holeAddress.port : 0;

interface Kind {
  readonly name: string;
  readonly server: RunningServer;
  readonly path: string;
  readonly pushes: boolean;
  readonly ms: number[];
}

const kinds = [
  await start("no push node", {}),
  await start("no push node, once more", {}),
  await start("a push node", { SVC_PUSH_URL: node.url }),
  await start("a push node that swallows everything", { SVC_PUSH_URL: `http://127.0.0.1:${holePort}` }),
];
for (let turn = 0; turn <= TURNS; turn++) {
  for (const kind of kinds) {
    const ms = await sendMany(kind);
    if (turn > 0) kind.ms.push(...ms); // the first turn warms up
  }
}

const base = kinds[0]!;
const lines = kinds.map(
  (kind): Line => ({
    name: `a chat message with ${kind.name}`,
    ratio: median(kind.ms) / median(base.ms),
    figures: `median ${milliseconds(median(kind.ms))}, 95 % ${milliseconds(quantile(kind.ms, 0.95))}, 99 % ${milliseconds(quantile(kind.ms, 0.99))}`,
    ...(kind.pushes ? { aim: { atMost: 1.1 } } : {}),
  }),
);
console.log(`${MESSAGES} messages a turn, ${AT_ONCE} at once, ${TURNS} turns`);
console.log(renderTable(lines));
for (const { server } of kinds) await server[Symbol.asyncDispose]();
await node[Symbol.asyncDispose]();
fcm[Symbol.dispose]();
process.exit(0);

async function start(name: string, env: Record<string, string>): Promise<Kind> {
  const server = await startServer({ env });
  const space = await createSpace(server.client, "bench");
  const chat = await createObject(server.client, space.id, { types: ["chat"] });
  if (name === "a push node") await watchFromElsewhere();
  const path = `/v1/spaces/${space.id}/objects/${chat.id}/chat/messages`;
  return { name, server, path, pushes: Object.keys(env).length > 0, ms: [] };
}

/** Somebody has a token, so that the node has something to look up. */
async function watchFromElsewhere(): Promise<void> {
  await pushAccount(node.url, "bench").register("android", "bench-token");
}

async function sendMany({ server, path }: Kind): Promise<number[]> {
  const ms: number[] = [];
  let left = MESSAGES;
  const one = async (): Promise<void> => {
    while (left-- > 0) {
      const atMs = performance.now();
      await server.client.post(path, { text: `message ${left}` }, 201);
      ms.push(performance.now() - atMs);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return ms;
}

function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!;
}
