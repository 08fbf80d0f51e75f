import { formatAddress, type ListenAddress } from "../engine/listen-address.ts";
import { JSON_CONTENT_TYPE } from "./reply.ts";

/**
 * A connection without a byte in either direction for this many seconds is closed; streams lift the limit for themselves.
 */
const IDLE_SECONDS = 120;

export interface Listener {
  /** The resolved `host:port`. */
  readonly address: string;
  readonly port: number;
  /** Takes the idle timeout off the request's connection. */
  disableIdleTimeout(request: Request): void;
  /** Accepts no more requests; resolves when those under way have been answered. */
  drain(): Promise<void>;
  /** Cuts off every connection. */
  abort(): void;
}

/**
 * Starts to listen. Bun's own limit on bodies is off: file uploads stream, and every other body is bounded where it is
 * read. Throws Bun's error (code EADDRINUSE) when the port is taken.
 */
export function listen(address: ListenAddress, fetch: (request: Request) => Promise<Response>): Listener {
  const server = Bun.serve({
    hostname: address.hostname,
    port: address.port,
    idleTimeout: IDLE_SECONDS,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    // Outside development mode Bun would silently let a second server share the port.
    reusePort: false,
    fetch,
    // `fetch` never rejects; if Bun itself fails, the answer is still an error envelope.
    error: () =>
      new Response(
        '{"error":{"code":"internal","message":"Something failed inside the server; its log has the details"}}',
        {
          status: 500,
          headers: { "content-type": JSON_CONTENT_TYPE },
        },
      ),
  });
  const port = server.port as number;
  return {
    port,
    address: formatAddress({ hostname: address.hostname, port }),
    disableIdleTimeout: (request) => server.timeout(request, 0),
    drain: () => server.stop(false),
    abort: () => void server.stop(true),
  };
}
