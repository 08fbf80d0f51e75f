import { afterEach, describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { bytesToHex } from "../../../src/base/bytes.ts";
import { randomBytes } from "../../../src/base/random.ts";
import type { LinkProcessOptions } from "../../support/network/link-process.ts";
import { pace } from "../../support/pace.ts";
import { until } from "../../support/server/client.ts";
import { skipGroupUnless } from "../../support/skip.ts";

const SCRIPT = join(import.meta.dir, "../../support/network/link-process.ts");

interface LinkProcess extends AsyncDisposable {
  readonly lines: Record<string, unknown>[];
  readonly errors: string[];
  heard(event: string): Record<string, unknown> | undefined;
  kill(): Promise<void>;
}

const running: AsyncDisposable[] = [];
afterEach(async () => {
  for (const child of running.splice(0)) await child[Symbol.asyncDispose]();
});

/** The environment is empty and the directory is the root: nothing is shared but the space key that it is given. */
function startPeer(options: LinkProcessOptions, prefix: readonly string[] = []): LinkProcess {
  const child = Bun.spawn([...prefix, process.execPath, SCRIPT, JSON.stringify(options)], {
    cwd: "/",
    env: { PATH: process.env["PATH"] },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  const lines: Record<string, unknown>[] = [];
  const errors: string[] = [];
  const read = async (stream: ReadableStream<Uint8Array>, take: (line: string) => void) => {
    let rest = "";
    for await (const chunk of stream) {
      const parts = (rest + new TextDecoder().decode(chunk)).split("\n");
      rest = parts.pop() ?? "";
      for (const part of parts) take(part);
    }
  };
  void read(child.stdout, (line) => lines.push(JSON.parse(line) as Record<string, unknown>));
  void read(child.stderr, (line) => errors.push(line));
  const peer: LinkProcess = {
    lines,
    errors,
    heard: (event) => lines.findLast((line) => line["event"] === event),
    kill: async () => {
      child.kill("SIGKILL");
      await child.exited;
    },
    [Symbol.asyncDispose]: async () => {
      await child.stdin.end();
      const ended = await Promise.race([child.exited.then(() => true), pace(5000).then(() => false)]);
      if (!ended) await peer.kill();
    },
  };
  running.push(peer);
  return peer;
}

const met = (a: LinkProcess, b: LinkProcess) =>
  until(
    () =>
      a.heard("echoed")?.["peerId"] === b.heard("started")?.["peerId"] &&
      b.heard("echoed")?.["peerId"] === a.heard("started")?.["peerId"] &&
      a.heard("echoed") !== undefined,
    "both met and were answered",
    20_000,
  );

describe("LAN link between processes on one machine", () => {
  const onLoopback = (): LinkProcessOptions => ({
    spaceKey: bytesToHex(randomBytes(32)),
    addresses: ["127.0.0.1"],
    mdnsPort: 20_000 + Math.floor(Math.random() * 20_000),
  });

  test("[SYNC-6] two servers find each other by multicast, sharing no file, environment or data root", async () => {
    const options = onLoopback();
    const [a, b] = [startPeer(options), startPeer(options)];
    await met(a, b);
    expect(a.heard("connected")?.["spaces"]).toEqual(["space"]);
  });

  test("[SYNC-6] one that is killed is noticed, and its successor is found", async () => {
    const options = onLoopback();
    const [a, b] = [startPeer(options), startPeer(options)];
    await met(a, b);
    await b.kill();
    await until(() => a.heard("disconnected") !== undefined, "a noticed");
    const c = startPeer(options);
    await met(a, c);
  });

  test("[SYNC-6] one that knows another key stays a stranger", async () => {
    const options = onLoopback();
    const other = { ...options, spaceKey: bytesToHex(randomBytes(32)) };
    const [a, b] = [startPeer(options), startPeer(other)];
    const c = startPeer(options);
    await met(a, c);
    // By then its own kind has found it where the others look, too.
    const d = startPeer(other);
    await met(b, d);
    expect(b.lines.filter(({ event }) => event === "connected").map(({ peerId }) => peerId)).toEqual([
      d.heard("started")!["peerId"],
    ]);
    expect(b.errors).toEqual([]);
  });
});

const IP = "ip";
const ip = (...args: string[]) => {
  const { status, stderr } = spawnSync(IP, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`ip ${args.join(" ")}: ${stderr}`);
};
const names = { a: `svc-a-${process.pid}`, b: `svc-b-${process.pid}` };
const namespacesAllowed = (() => {
  try {
    ip("netns", "add", names.a);
    ip("netns", "del", names.a);
    return true;
  } catch {
    return false;
  }
})();

skipGroupUnless(namespacesAllowed, "network namespaces are not permitted here")(
  "LAN link between two machines (network namespaces and a veth pair)",
  () => {
    afterEach(() => {
      for (const name of [names.a, names.b]) spawnSync(IP, ["netns", "del", name]);
    });
    const wire = () => {
      ip("netns", "add", names.a);
      ip("netns", "add", names.b);
      ip("link", "add", "svc0", "netns", names.a, "type", "veth", "peer", "name", "svc0", "netns", names.b);
      for (const [name, address] of [
        [names.a, "10.77.0.1/24"],
        [names.b, "10.77.0.2/24"],
      ] as const) {
        ip("-n", name, "addr", "add", address, "dev", "svc0");
        ip("-n", name, "link", "set", "svc0", "up");
        ip("-n", name, "link", "set", "lo", "up");
      }
    };
    const startIn = (name: string, options: LinkProcessOptions) => startPeer(options, ["ip", "netns", "exec", name]);

    test("they find each other by multicast alone", async () => {
      wire();
      const options = { spaceKey: bytesToHex(randomBytes(32)) };
      await met(startIn(names.a, options), startIn(names.b, options));
    }, 60_000);

    test("[SYNC-6] a cable that is pulled ends the link, and one put back brings it again", async () => {
      wire();
      const options = { spaceKey: bytesToHex(randomBytes(32)), silence: { pingAfterMs: 500, deadAfterMs: 2000 } };
      const [a, b] = [startIn(names.a, options), startIn(names.b, options)];
      await met(a, b);
      ip("-n", names.a, "link", "set", "svc0", "down");
      await until(
        () => a.heard("disconnected") !== undefined && b.heard("disconnected") !== undefined,
        "both noticed",
        100_000,
      );
      const before = [a, b].map((peer) => peer.lines.length);
      ip("-n", names.a, "link", "set", "svc0", "up");
      await until(
        () => [a, b].every((peer, index) => peer.lines.slice(before[index]).some((line) => line["event"] === "echoed")),
        "both met again",
        100_000,
      );
    }, 240_000);
  },
);
