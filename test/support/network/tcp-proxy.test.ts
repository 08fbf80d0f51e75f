import { expect, test } from "bun:test";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { until } from "../server/client.ts";
import { startTcpProxy } from "./tcp-proxy.ts";

test("bytes pass in their order, however the delay changes meanwhile", async () => {
  const received: Buffer[] = [];
  const target = createServer((socket) => socket.on("data", (data: Buffer) => void received.push(data)));
  target.listen(0, "127.0.0.1");
  await once(target, "listening");
  await using proxy = await startTcpProxy((target.address() as AddressInfo).port);
  const client = connect(proxy.port, "127.0.0.1");
  client.setNoDelay(true);
  await once(client, "connect");
  const sent = Buffer.alloc(4 * 3_000);
  for (let n = 0; n < 3_000; n++) {
    sent.writeUInt32BE(n, 4 * n);
    proxy.delay(n % 7 < 3 ? (n % 13) / 4 : 0);
    client.write(sent.subarray(4 * n, 4 * n + 4));
    if (n % 3 === 0) await new Promise((turn) => setImmediate(turn));
  }
  const length = (): number => received.reduce((total, { length }) => total + length, 0);
  proxy.delay(0);
  await until(() => length() === sent.length, "all bytes");
  client.end();
  expect(Buffer.concat(received).equals(sent)).toBe(true);
  client.destroy();
  target.close();
});
