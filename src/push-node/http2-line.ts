import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from "node:http2";
import type { Clock } from "../base/clock.ts";

export interface Http2Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export interface Http2Line {
  /** Makes one request. Rejects at the deadline, and when the session ends before the answer. */
  request(headers: OutgoingHttpHeaders, body: string): Promise<Http2Reply>;
  close(): void;
}

interface LineOptions {
  readonly deadlineMs: number;
  /** A session that was unused for this long is not trusted, because the other side may have dropped it silently. */
  readonly idleMs: number;
  readonly clock: Clock;
  /** Certificates in addition to the system's, for tests. */
  readonly ca?: string;
}

const MAX_REPLY_CHARS = 64 << 10;

/**
 * A line to one server over HTTP/2. Every wait has a deadline, and a session in which one passed is destroyed: a
 * connection that swallows everything costs each request on it one deadline, and the next request gets a new connection.
 * GOAWAY, errors and idling also retire a session: requests under way on it may finish, new ones get another.
 */
export function createHttp2Line(origin: string, options: LineOptions): Http2Line {
  let current: { session: ClientHttp2Session; usedMs: number } | undefined;

  const retire = (session: ClientHttp2Session): void => {
    if (current?.session === session) current = undefined;
  };
  const open = (): ClientHttp2Session => {
    const session = connect(origin, options.ca === undefined ? {} : { ca: options.ca });
    session.setMaxListeners(0); // each request under way adds one of each listener
    session.on("error", () => retire(session)); // each request gets the error itself
    session.on("close", () => retire(session));
    session.on("goaway", () => {
      retire(session);
      session.close();
    });
    return session;
  };
  const sessionNow = (): ClientHttp2Session => {
    const nowMs = options.clock.nowMs();
    if (current && (current.session.closed || current.session.destroyed)) current = undefined;
    if (current && nowMs - current.usedMs > options.idleMs) {
      const { session } = current;
      retire(session);
      session.close();
    }
    current ??= { session: open(), usedMs: nowMs };
    current.usedMs = nowMs;
    return current.session;
  };

  const ask = (headers: OutgoingHttpHeaders, body: string): Promise<Http2Reply> => {
    const session = sessionNow();
    return new Promise<Http2Reply>((resolve, reject) => {
      let settled = false;
      const finish = (act: () => void) => {
        if (settled) return;
        settled = true;
        clearTimeout(timer);
        session.off("close", onClose);
        session.off("error", onError);
        act();
      };
      const onClose = () => finish(() => reject(new Error("the connection was closed before the answer")));
      const onError = (error: Error) => finish(() => reject(error));
      const timer = setTimeout(() => {
        finish(() => reject(new Error(`no answer within ${options.deadlineMs} ms`)));
        retire(session);
        session.destroy();
      }, options.deadlineMs);
      session.on("close", onClose);
      session.on("error", onError);
      try {
        exchange(session, headers, body, (reply) => finish(() => resolve(reply)), onError);
      } catch (error) {
        retire(session);
        onError(error as Error);
      }
    });
  };

  return {
    async request(headers, body) {
      try {
        return await ask(headers, body);
      } catch (error) {
        // The other side retired the session before it accepted the request, so nobody has seen the request.
        if ((error as NodeJS.ErrnoException).code !== "ERR_HTTP2_GOAWAY_SESSION") throw error;
        if (current) retire(current.session);
        return ask(headers, body);
      }
    },
    close() {
      const session = current?.session;
      current = undefined;
      session?.destroy();
    },
  };
}

function exchange(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body: string,
  onReply: (reply: Http2Reply) => void,
  onError: (error: Error) => void,
): void {
  const stream = session.request(headers);
  let replyHeaders: Http2Reply["headers"] = {};
  let text = "";
  stream.setEncoding("utf8");
  stream.on("response", (received) => {
    replyHeaders = received as Http2Reply["headers"];
  });
  stream.on("data", (chunk: string) => {
    if (text.length < MAX_REPLY_CHARS) text += chunk;
  });
  stream.on("error", onError);
  stream.on("end", () => {
    const status = Number(replyHeaders[":status"]);
    if (status > 0) onReply({ status, headers: replyHeaders, body: text });
    else onError(new Error("the stream ended without an answer"));
  });
  stream.on("close", () => onError(new Error("the stream was closed before the answer")));
  stream.end(body);
}
