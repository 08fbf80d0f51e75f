import type { BaseContext } from "./route.ts";
import { EventConnection } from "./stream/event-connection.ts";
import type { OuterStream } from "./stream/inner-streams.ts";
import type { StreamSource } from "./stream/stream-source.ts";
import { Subscription } from "./stream/subscription.ts";

/** Bytes that one write to the socket joins, about. */
const WRITE_BYTES = 64 << 10;

/**
 * Opens an event stream (LIVE-1): `ready`, the source's frames, keepalive comments while idle, a final `closed`. If the
 * stream was requested inside `POST /v1/streams`, its frames go over that stream. Errors: server.unavailable, and what
 * the source's start throws.
 */
export async function openStream(
  ctx: Pick<BaseContext<unknown, unknown, unknown>, "request" | "server"> & {
    readonly outer?: OuterStream | undefined;
  },
  source: StreamSource,
): Promise<Response> {
  const { request, server, outer } = ctx;
  if (outer) {
    await outer.carry(source);
    return new Response(null);
  }
  server.streams.admit();
  const subscription = new Subscription(source);
  const connection = new EventConnection(
    {
      take: () => subscription.take(WRITE_BYTES),
      onChange: (listener) => subscription.onChange(listener),
      get finished() {
        return subscription.finished;
      },
      close: (reason) => subscription.close(reason),
      stop: () => subscription.stop(),
    },
    server.streams,
  );
  try {
    await subscription.start();
  } catch (thrown) {
    connection.dispose();
    throw thrown;
  }
  const response = connection.respond(request.signal);
  server.disableIdleTimeout(request);
  return response;
}
