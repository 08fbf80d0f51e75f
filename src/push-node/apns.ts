import type { Clock } from "../base/clock.ts";
import { retryAfterMs } from "../base/retry-after.ts";
import { createHttp2Line, type Http2Line, type Http2Reply } from "./http2-line.ts";
import {
  type Notification,
  type Outcome,
  PROVIDER_EXPIRY_SECONDS,
  type Provider,
  reasonOf,
  SEND_DEADLINE_MS,
  sealedData,
} from "./provider.ts";
import { createTokenSigner } from "./web-token.ts";

/** Apple refuses tokens older than an hour, and servers that make new ones more often than every 20 minutes. */
const PROVIDER_TOKEN_MS = 50 * 60_000;
const SESSION_IDLE_MS = 5 * 60_000;
/** Text shown when the app's extension cannot open the sealed bytes. */
const PLACEHOLDER = { title: "New message", body: "Open the app to read it" };

export interface ApnsCredentials {
  readonly keyPem: string;
  readonly keyId: string;
  readonly teamId: string;
  /** The app's bundle id. */
  readonly topic: string;
}

interface ApnsDeps {
  readonly credentials: ApnsCredentials;
  readonly productionUrl: string;
  readonly sandboxUrl: string;
  readonly clock: Clock;
  readonly ca?: string;
  /** For tests. */
  readonly deadlineMs?: number;
  readonly sessionIdleMs?: number;
}

/** Apple's push service, which reaches iOS devices. HTTP/2, authenticated by tokens. */
export function createApns(deps: ApnsDeps): Provider {
  const { credentials, clock } = deps;
  const signToken = createTokenSigner(credentials.keyPem, "ES256");
  const lineTo = (origin: string): Http2Line =>
    createHttp2Line(origin, {
      deadlineMs: deps.deadlineMs ?? SEND_DEADLINE_MS,
      idleMs: deps.sessionIdleMs ?? SESSION_IDLE_MS,
      clock,
      ...(deps.ca === undefined ? {} : { ca: deps.ca }),
    });
  const lines = { production: lineTo(deps.productionUrl), sandbox: lineTo(deps.sandboxUrl) };
  let made: { token: string; atMs: number } | undefined;
  const providerToken = (): string => {
    const nowMs = clock.nowMs();
    if (!made || nowMs - made.atMs >= PROVIDER_TOKEN_MS) {
      const claims = { iss: credentials.teamId, iat: Math.floor(nowMs / 1000) };
      made = { token: signToken({ kid: credentials.keyId }, claims), atMs: nowMs };
    }
    return made.token;
  };

  const post = (notification: Notification, sandbox: boolean): Promise<Http2Reply> =>
    (sandbox ? lines.sandbox : lines.production).request(
      headersOf(notification, providerToken(), credentials.topic, clock.nowMs()),
      JSON.stringify(toPayload(notification)),
    );

  const sendTo = async (notification: Notification, sandbox: boolean): Promise<Outcome> => {
    let reply = await post(notification, sandbox);
    if (reply.status === 403 && faultOf(reply).reason === "ExpiredProviderToken") {
      made = undefined;
      reply = await post(notification, sandbox);
    }
    return outcomeOf(reply, notification.device.registeredMs, sandbox, clock.nowMs());
  };

  return {
    name: "apns",
    async send(notification) {
      const sandbox = notification.device.sandbox ?? false;
      try {
        const first = await sendTo(notification, sandbox);
        // A token does not say to which environment it belongs, so the other one is asked before the token counts as
        // dead.
        if (first.kind !== "dead" || first.certain) return first;
        return await sendTo(notification, !sandbox);
      } catch (error) {
        return { kind: "later", everyone: false, unreachable: true, reason: reasonOf(error) };
      }
    },
    async close() {
      lines.production.close();
      lines.sandbox.close();
    },
  };
}

function headersOf(
  { delivery, device, collapseId }: Notification,
  providerToken: string,
  topic: string,
  nowMs: number,
): Record<string, string> {
  const isMessage = delivery.kind === "message";
  return {
    ":method": "POST",
    ":path": `/3/device/${encodeURIComponent(device.token)}`,
    authorization: `bearer ${providerToken}`,
    "content-type": "application/json",
    "apns-id": uuidOf(delivery.id),
    "apns-topic": topic,
    "apns-push-type": isMessage ? "alert" : "background",
    "apns-priority": isMessage ? "10" : "5",
    "apns-expiration": String(Math.floor(nowMs / 1000) + PROVIDER_EXPIRY_SECONDS),
    "apns-collapse-id": collapseId,
  };
}

function toPayload(notification: Notification): object {
  const data = sealedData(notification);
  // A `read` wakes the app in the background to remove notifications; there is nothing to show.
  if (notification.delivery.kind === "read") return { aps: { "content-available": 1 }, ...data };
  return { aps: { alert: PLACEHOLDER, sound: "default", "mutable-content": 1 }, ...data };
}

/** The delivery's id in the form that Apple accepts, by which Apple recognises a repeated delivery. */
const uuidOf = (id: string): string => id.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");

function outcomeOf(reply: Http2Reply, registeredMs: number, sandbox: boolean, nowMs: number): Outcome {
  if (reply.status === 200) return { kind: "accepted", sandbox };
  const fault = faultOf(reply);
  const reason = `${reply.status} ${fault.reason}`;
  if (reply.status === 410) {
    // The device registered again after the moment that this answer is about.
    const isOlder = fault.timestamp !== undefined && fault.timestamp < registeredMs;
    return isOlder ? { kind: "refused", reason } : { kind: "dead", certain: true, reason };
  }
  if (reply.status === 400 && fault.reason === "BadDeviceToken") return { kind: "dead", certain: false, reason };
  if (reply.status === 429 || reply.status >= 500) {
    const { "retry-after": header } = reply.headers;
    const delayMs = retryAfterMs(typeof header === "string" ? header : undefined, nowMs);
    // A 429 is about one token, or about provider tokens that were made too often.
    const everyone = (reply.status >= 500 && delayMs !== undefined) || fault.reason === "TooManyProviderTokenUpdates";
    return { kind: "later", everyone, reason, ...(delayMs === undefined ? {} : { delayMs }) };
  }
  return { kind: "refused", reason };
}

function faultOf(reply: Http2Reply): { reason: string; timestamp?: number } {
  try {
    const { reason, timestamp } = JSON.parse(reply.body) as { reason?: unknown; timestamp?: unknown };
    return { reason: String(reason), ...(typeof timestamp === "number" ? { timestamp } : {}) };
  } catch {
    return { reason: "" };
  }
}
