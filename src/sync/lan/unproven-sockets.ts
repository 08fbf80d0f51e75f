import type { TLSSocket } from "node:tls";

/**
 * Connections that have proved nothing yet, at most so many (SYNC-6). If there are more, the address that has most of them loses its
 * oldest, so an address that opens connections and says nothing pushes out only itself. Connections of one address leave
 * each other the time that a handshake takes: one that comes sooner is turned away, and may come again.
 */
export interface UnprovenSockets {
  /** Takes one in. It may close another for it, or this one. */
  admit(socket: TLSSocket): void;
  /** It has become a link, or is closed. */
  release(socket: TLSSocket): void;
}

/** How long a handshake may take, on a busy machine too, before its socket may be closed for a newer one. */
const GRACE_MS = 1_000;

export function createUnprovenSockets(max: number, nowMs: () => number = () => performance.now()): UnprovenSockets {
  /** In the order in which they came. */
  const sockets = new Map<TLSSocket, { readonly address: string; readonly sinceMs: number }>();

  const oldestOfTheMost = (): TLSSocket | undefined => {
    const counts = new Map<string, number>();
    for (const { address } of sockets.values()) counts.set(address, (counts.get(address) ?? 0) + 1);
    const most = Math.max(...counts.values());
    for (const [socket, { address }] of sockets) if (counts.get(address) === most) return socket;
    return undefined;
  };

  return {
    admit(socket) {
      const address = socket.remoteAddress ?? "";
      sockets.set(socket, { address, sinceMs: nowMs() });
      if (sockets.size <= max) return;
      const oldest = oldestOfTheMost();
      const known = oldest && sockets.get(oldest);
      const isYoung = known?.address === address && nowMs() - known.sinceMs < GRACE_MS;
      const loser = oldest && !isYoung ? oldest : socket;
      sockets.delete(loser);
      loser.destroy();
    },
    release: (socket) => void sockets.delete(socket),
  };
}
