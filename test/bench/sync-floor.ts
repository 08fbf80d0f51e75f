/**
 * What the transports carry with nothing of ours on them: TLS 1.3 over loopback in frames of 1 MiB, and JetStream with
 * messages of a given size, each in a process of its own at both ends.
 *
 *     bun test/bench/sync-floor.ts tls <bytes>
 *     bun test/bench/sync-floor.ts nats <url> <messages> <bytes a message>
 *
 * Prints seconds as JSON: `{seconds}` or `{publish, fetch}`.
 */
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { makeTestCa } from "../support/network/test-ca.ts";

const FRAME_BYTES = 1 << 20;
/** Messages that wait for their acknowledgement at most. */
const IN_FLIGHT = 64;

const [kind, ...rest] = process.argv.slice(2);
if (kind === "tls") console.log(JSON.stringify({ seconds: await overTls(Number(rest[0])) }));
else if (kind === "tls-send") await sendOverTls(Number(rest[0]), Number(rest[1]));
else console.log(JSON.stringify(await overNats(rest[0]!, Number(rest[1]), Number(rest[2]))));

async function overTls(bytes: number): Promise<number> {
  const { privateKey: key, certificate: cert } = makeTestCa();
  const done = Promise.withResolvers<number>();
  let startedAt = 0;
  let received = 0;
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    tls: { key, cert },
    socket: {
      data(_socket, chunk) {
        startedAt ||= performance.now();
        received += chunk.length;
        if (received >= bytes) done.resolve((performance.now() - startedAt) / 1000);
      },
    },
  });
  const sender = Bun.spawn([process.execPath, import.meta.path, "tls-send", String(listener.port), String(bytes)], {
    stderr: "inherit",
  });
  const seconds = await done.promise;
  sender.kill();
  listener.stop(true);
  return seconds;
}

async function sendOverTls(port: number, bytes: number): Promise<void> {
  const frame = crypto.getRandomValues(new Uint8Array(65_536));
  const big = new Uint8Array(FRAME_BYTES);
  for (let at = 0; at < FRAME_BYTES; at += frame.length) big.set(frame, at);
  let sent = 0;
  let offset = 0;
  const push = (socket: { write(data: Uint8Array): number }): void => {
    while (sent < bytes) {
      const wrote = socket.write(big.subarray(offset));
      if (wrote <= 0) return;
      sent += wrote;
      offset = (offset + wrote) % FRAME_BYTES;
    }
  };
  await Bun.connect({
    hostname: "127.0.0.1",
    port,
    tls: { rejectUnauthorized: false },
    socket: { open: push, drain: push, data: () => {} },
  });
  await Bun.sleep(600_000);
}

async function overNats(url: string, messages: number, size: number): Promise<{ publish: number; fetch: number }> {
  const nc = await connect({ servers: url });
  const manager = await jetstreamManager(nc);
  await manager.streams.add({ name: "floor", subjects: ["floor.>"] });
  const js = jetstream(nc);
  const payload = crypto.getRandomValues(new Uint8Array(Math.min(size, 65_536)));
  const body = new Uint8Array(size).map((_, index) => payload[index % payload.length]!);
  const publishedAt = performance.now();
  let next = 0;
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => {
      while (next < messages) await js.publish(`floor.${next++ % 64}`, body);
    }),
  );
  const publish = (performance.now() - publishedAt) / 1000;
  const fetchedAt = performance.now();
  const consumer = await js.consumers.get("floor");
  let got = 0;
  for await (const message of await consumer.consume()) {
    got += message.data.length > 0 ? 1 : 0;
    if (got === messages) break;
  }
  const fetch = (performance.now() - fetchedAt) / 1000;
  await manager.streams.delete("floor");
  await nc.close();
  return { publish, fetch };
}
