import { formatAddress, type ListenAddress } from "../engine/listen-address.ts";
import { JSON_CONTENT_TYPE } from "./reply/reply.ts";

/**
 * A connection without a byte in either direction for this many seconds is closed; streams lift the limit for themselves.
 */
const IDLE_SECONDS = 120;

/** A socket that listens once it is started, and what is done to it. Before that nothing is under way. */
export interface Listener {
  /** `host:port`, resolved once it listens. */
  readonly address: string;
  readonly port: number;
  /** Begins to listen, on another port if one is given. Throws Bun's error (code EADDRINUSE) when the port is taken. */
  start(fetch: (request: Request) => Promise<Response>, port?: number): void;
  /** Takes the idle timeout off the request's connection. */
  disableIdleTimeout(request: Request): void;
  /** Accepts no more requests; resolves when those under way have been answered. */
  drain(): Promise<void>;
  /** Cuts off every connection. */
  abort(): void;
}

export function createListener({ hostname, port: wanted }: ListenAddress): Listener {
  let server: Bun.Server<undefined> | undefined;
  let port = wanted;
  return {
    get port() {
      return port;
    },
    get address() {
      return formatAddress({ hostname, port });
    },
    start(fetch, at = wanted) {
      server = Bun.serve({
        hostname,
        port: at,
        idleTimeout: IDLE_SECONDS,
        // Bun's own limit on bodies is off: file uploads stream, and every other body is bounded where it is read.
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
      port = server.port as number;
    },
    disableIdleTimeout: (request) => server?.timeout(request, 0),
    drain: async () => server?.stop(false),
    abort: () => void server?.stop(true),
  };
}
