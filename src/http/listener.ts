import { formatAddress, type ListenAddress } from "../engine/listen-address.ts";
import { JSON_CONTENT_TYPE } from "./reply.ts";

/** Seconds without a byte either way after which a connection is closed; streams lift it for themselves. */
const IDLE_SECONDS = 120;

export interface Listener {
  /** The resolved `host:port`. */
  readonly address: string;
  readonly port: number;
  /** Takes the idle timeout off the request's connection. */
  disableIdleTimeout(request: Request): void;
  /** Accepts no more; resolves when what is in flight has been answered. */
  drain(): Promise<void>;
  /** Cuts off every connection. */
  abort(): void;
}

/**
 * Listens. Bun's own limit on bodies is off: file uploads stream, and every other body is capped where it is read.
 * Throws Bun's error (code EADDRINUSE) when the port is taken.
 */
export function listen(address: ListenAddress, fetch: (request: Request) => Promise<Response>): Listener {
  const server = Bun.serve({
    hostname: address.hostname,
    port: address.port,
    idleTimeout: IDLE_SECONDS,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    // Without development mode Bun would let a second server share the port, silently.
    reusePort: false,
    fetch,
    // `fetch` never rejects; should Bun itself fail, the answer is still an envelope.
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
