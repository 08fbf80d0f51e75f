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

test("[LAN-unproven] who opens most connections and proves nothing loses its oldest; who comes once stays", () => {
  const sockets = createUnprovenSockets(4);
  const honest = socketFrom("10.0.0.2");
  sockets.admit(honest);
  const flood = Array.from({ length: 50 }, () => socketFrom("10.0.0.9"));
  for (const socket of flood) sockets.admit(socket);
  expect(honest.destroyed).toBe(false);
  expect(flood.map(({ destroyed }) => destroyed)).toEqual(flood.map((_, index) => index < 47));
  const late = socketFrom("10.0.0.3");
  sockets.admit(late);
  expect(late.destroyed).toBe(false);
});

test("[LAN-unproven] of one address the oldest goes first, and what became a link counts no more", () => {
  const sockets = createUnprovenSockets(2);
  const [first, second, third] = [0, 1, 2].map(() => socketFrom("127.0.0.1"));
  sockets.admit(first!);
  sockets.release(first!);
  sockets.admit(second!);
  sockets.admit(third!);
  expect([first, second, third].map((socket) => socket!.destroyed)).toEqual([false, false, false]);
  sockets.admit(socketFrom("127.0.0.1"));
  expect([first, second, third].map((socket) => socket!.destroyed)).toEqual([false, true, false]);
});
