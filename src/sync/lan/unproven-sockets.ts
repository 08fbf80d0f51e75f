import type { TLSSocket } from "node:tls";

/**
 * Connections that have proved nothing yet, so many at most. When there are more, the address that has most of them loses
 * its oldest: whoever opens connections and says nothing pushes out itself, and nobody else waits for it.
 */
export interface UnprovenSockets {
  /** Takes one in, and may close another for it, or this one. */
  admit(socket: TLSSocket): void;
  /** It has become something, or is closed. */
  release(socket: TLSSocket): void;
}

export function createUnprovenSockets(max: number): UnprovenSockets {
  /** In the order of their coming. */
  const addressBySocket = new Map<TLSSocket, string>();

  const oldestOfTheMost = (): TLSSocket | undefined => {
    const counts = new Map<string, number>();
    for (const address of addressBySocket.values()) counts.set(address, (counts.get(address) ?? 0) + 1);
    const most = Math.max(...counts.values());
    for (const [socket, address] of addressBySocket) if (counts.get(address) === most) return socket;
    return undefined;
  };

  return {
    admit(socket) {
      addressBySocket.set(socket, socket.remoteAddress ?? "");
      if (addressBySocket.size <= max) return;
      const loser = oldestOfTheMost();
      if (!loser) return;
      addressBySocket.delete(loser);
      loser.destroy();
    },
    release: (socket) => void addressBySocket.delete(socket),
  };
}
