/** The line to Apple over connections that misbehave: HTTP/2 under Bun, which has stalled for others. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { createServer, type Socket } from "node:net";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { createApns } from "../../../src/push-node/apns.ts";
import type { Notification, Outcome, Provider } from "../../../src/push-node/provider.ts";
import { startTcpProxy } from "../../support/network/tcp-proxy.ts";
import { apnsCredentials, type FakeApns, startFakeApns } from "../../support/push/fake-apns.ts";
import { rule } from "../../support/rule.ts";

const DEADLINE_MS = 400;
const IDLE_MS = 300;
/** Beyond the deadline: what the machine is busy with. */
const GRACE_MS = 600;

let apple: FakeApns;
beforeAll(async () => {
  apple = await startFakeApns();
});
afterAll(() => apple[Symbol.asyncDispose]());

const provider = (url: string, clock: Clock = systemClock): Provider & AsyncDisposable => {
  const urls = { productionUrl: url, sandboxUrl: apple.url };
  const apns = createApns({
    ...{ credentials: apnsCredentials, ...urls, clock },
    ...{ deadlineMs: DEADLINE_MS, sessionIdleMs: IDLE_MS },
  });
  return { ...apns, [Symbol.asyncDispose]: apns.close };
};
let ids = 0;
const notification = (token: string): Notification => ({
  delivery: {
    ...{ id: (ids++).toString(16).padStart(32, "0"), account: "A", device: "d", kind: "message", spaceKey: "k" },
    ...{ chat: "c", keyId: "i", sealed: "abc", attempts: 0, dueMs: 0, expiresMs: 0 },
  },
  device: { account: "A", device: "d", platform: "ios", token, registeredMs: 0 },
  collapseId: "x",
});
const timed = async (work: Promise<Outcome>): Promise<Outcome & { ms: number }> => {
  const atMs = performance.now();
  return { ...(await work), ms: performance.now() - atMs };
};

describe("connections that swallow everything", () => {
  rule("[PUSH-7] one that takes the connection and says nothing costs a deadline, each time anew", async () => {
    const sockets = new Set<Socket>();
    const hole = createServer((socket) => void sockets.add(socket));
    await new Promise<void>((resolve) => hole.listen(0, "127.0.0.1", resolve));
    const address = hole.address();
    await using apns = provider(
      `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`,
    );
    for (let round = 1; round <= 3; round++) {
      const many = await Promise.all([1, 2, 3].map(() => timed(apns.send(notification("a1")))));
      for (const outcome of many) {
        expect(outcome.kind).toBe("later");
        expect(outcome.ms).toBeLessThan(DEADLINE_MS + GRACE_MS);
      }
      expect(sockets.size).toBe(round); // a new connection for each round, one for all of a round
    }
    for (const socket of sockets) socket.destroy();
    hole.close();
  });

  rule("[PUSH-7] one that dies without a word after it had worked is replaced", async () => {
    await using proxy = await startTcpProxy(Number(new URL(apple.url).port));
    await using apns = provider(`http://127.0.0.1:${proxy.port}`);
    expect(await apns.send(notification("b1"))).toMatchObject({ kind: "accepted" });
    proxy.drop("up", true);
    proxy.drop("down", true);
    const stalled = await timed(apns.send(notification("b2")));
    expect(stalled.kind).toBe("later");
    expect(stalled.ms).toBeLessThan(DEADLINE_MS + GRACE_MS);
    proxy.drop("up", false);
    proxy.drop("down", false);
    expect(await apns.send(notification("b3"))).toMatchObject({ kind: "accepted" });
  });

  rule("[PUSH-7] nobody listening is known at once", async () => {
    await using apns = provider("http://127.0.0.1:1");
    const outcome = await timed(apns.send(notification("c1")));
    expect(outcome.kind).toBe("later");
    expect(outcome.ms).toBeLessThan(DEADLINE_MS);
  });
});

describe("sessions that end", () => {
  rule("[PUSH-7] GOAWAY retires a session, and the next request gets another", async () => {
    await using apns = provider(apple.url);
    const before = apple.sessions;
    apple.fail("d1", ["goaway"]);
    for (const token of ["d1", "d2", "d3"])
      expect(await apns.send(notification(token))).toMatchObject({ kind: "accepted" });
    expect(apple.sessions - before).toBe(2);
  });

  rule("[PUSH-7] one that was idle for long is not trusted; one in use is kept", async () => {
    let nowMs = Date.now();
    await using apns = provider(apple.url, { nowMs: () => nowMs });
    const before = apple.sessions;
    for (let index = 0; index < 6; index++) {
      await apns.send(notification("e1"));
      nowMs += IDLE_MS / 3;
    }
    expect(apple.sessions - before).toBe(1);
    nowMs += IDLE_MS * 1.5;
    expect(await apns.send(notification("e1"))).toMatchObject({ kind: "accepted" });
    expect(apple.sessions - before).toBe(2);
  });

  rule("[PUSH-7] one answer that hangs does not spoil what comes after it", async () => {
    await using apns = provider(apple.url);
    apple.fail("f1", ["hang"]);
    expect((await apns.send(notification("f1"))).kind).toBe("later");
    const many = await Promise.all(Array.from({ length: 20 }, (_, index) => apns.send(notification(`f-${index}`))));
    expect(many.every(({ kind }) => kind === "accepted")).toBe(true);
  });
});
