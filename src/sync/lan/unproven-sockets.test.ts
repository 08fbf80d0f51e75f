import { expect, test } from "bun:test";
import type { TLSSocket } from "node:tls";
import { createUnprovenSockets } from "./unproven-sockets.ts";

const socketFrom = (remoteAddress: string) => {
  const socket = {
    remoteAddress,
    destroyed: false,
    destroy() {
      this.destroyed = true;
    },
  };
  return socket as unknown as TLSSocket & { destroyed: boolean };
};

test("[SYNC-6] who opens most connections and proves nothing loses its own; who comes from elsewhere stays", () => {
  let now = 0;
  const sockets = createUnprovenSockets(4, () => now);
  const honest = socketFrom("10.0.0.2");
  sockets.admit(honest);
  const flood = Array.from({ length: 50 }, () => socketFrom("10.0.0.9"));
  for (const socket of flood) {
    now += 10;
    sockets.admit(socket);
  }
  expect(honest.destroyed).toBe(false);
  expect(flood.filter(({ destroyed }) => !destroyed)).toHaveLength(3);
  const late = socketFrom("10.0.0.3");
  sockets.admit(late);
  expect([honest, late].map(({ destroyed }) => destroyed)).toEqual([false, false]);
  expect(flood.filter(({ destroyed }) => !destroyed)).toHaveLength(2);
});

test("[SYNC-6] of one address the oldest goes, once it had the time of a handshake; what became a link counts no more", () => {
  let now = 0;
  const sockets = createUnprovenSockets(2, () => now);
  const [first, second, third, hasty, patient] = Array.from({ length: 5 }, () => socketFrom("127.0.0.1"));
  sockets.admit(first!);
  sockets.release(first!);
  sockets.admit(second!);
  sockets.admit(third!);
  now += 500;
  sockets.admit(hasty!);
  const destroyed = () => [first, second, third, hasty, patient].map((socket) => socket!.destroyed);
  expect(destroyed()).toEqual([false, false, false, true, false]);
  now += 600;
  sockets.admit(patient!);
  expect(destroyed()).toEqual([false, true, false, true, false]);
});
