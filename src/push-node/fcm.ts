import type { Clock } from "../base/clock.ts";
import { retryAfterMs } from "../base/retry-after.ts";
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

const SCOPE = "https://www.googleapis.com/auth/firebase.messaging";
const GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/** An access token is renewed this long before it expires. */
const RENEW_MS = 5 * 60_000;

export interface ServiceAccount {
  readonly project_id: string;
  readonly client_email: string;
  readonly private_key: string;
  readonly token_uri: string;
}

interface FcmDeps {
  readonly account: ServiceAccount;
  readonly baseUrl: string;
  readonly clock: Clock;
}

/** Firebase Cloud Messaging, HTTP v1, which reaches Android devices. Plain HTTP/1.1. */
export function createFcm(deps: FcmDeps): Provider {
  const access = createAccessTokens(deps);
  const url = `${deps.baseUrl}/v1/projects/${encodeURIComponent(deps.account.project_id)}/messages:send`;

  const post = async (notification: Notification, bearer: string): Promise<Outcome | "unauthorized"> => {
    const response = await fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
      body: JSON.stringify({ message: toMessage(notification) }),
      signal: AbortSignal.timeout(SEND_DEADLINE_MS),
      redirect: "error",
    });
    const text = await response.text();
    if (response.ok) return { kind: "accepted" };
    if (response.status === 401) return "unauthorized";
    return outcomeOf(response.status, text, retryAfterMs(response.headers.get("retry-after"), deps.clock.nowMs()));
  };

  return {
    name: "fcm",
    async send(notification) {
      try {
        const first = await post(notification, await access.current());
        if (first !== "unauthorized") return first;
        access.forget();
        const second = await post(notification, await access.current());
        return second === "unauthorized"
          ? { kind: "later", everyone: true, reason: "the provider refuses the service account's access token" }
          : second;
      } catch (error) {
        return { kind: "later", everyone: false, unreachable: true, reason: reasonOf(error) };
      }
    },
    async close() {},
  };
}

function toMessage({ device, collapseId, ...rest }: Notification): object {
  const data = sealedData({ device, collapseId, ...rest });
  return {
    token: device.token,
    data,
    android: {
      // A `read` is not worth waking a device.
      priority: rest.delivery.kind === "message" ? "HIGH" : "NORMAL",
      ttl: `${PROVIDER_EXPIRY_SECONDS}s`,
      collapse_key: collapseId,
    },
  };
}

interface FcmError {
  error?: {
    status?: string;
    message?: string;
    details?: { errorCode?: string; fieldViolations?: { field?: string }[] }[];
  };
}

/** What the documented error responses mean for a token. */
function outcomeOf(status: number, text: string, delayMs: number | undefined): Outcome {
  const error = parseError(text);
  const details = error?.details ?? [];
  const code = details.find(({ errorCode }) => errorCode)?.errorCode ?? error?.status ?? "";
  const reason = `${status} ${code}`;
  if (code === "UNREGISTERED") return { kind: "dead", certain: true, reason };
  const namesToken = details.some(({ fieldViolations = [] }) =>
    fieldViolations.some(({ field }) => field === "message.token"),
  );
  if (status === 400 && namesToken) return { kind: "dead", certain: false, reason };
  if (status === 429 || status >= 500) {
    // A 429 may be about one device that gets too many messages, which is no reason to delay the others.
    const everyone = status >= 500 && delayMs !== undefined;
    return { kind: "later", everyone, reason, ...(delayMs === undefined ? {} : { delayMs }) };
  }
  return { kind: "refused", reason };
}

function parseError(text: string): FcmError["error"] {
  try {
    return (JSON.parse(text) as FcmError | null)?.error;
  } catch {
    return undefined; // a proxy's page; the status says enough
  }
}

/** OAuth access tokens for the service account: requested one at a time and kept until they expire. */
function createAccessTokens({ account, clock }: FcmDeps) {
  const signToken = createTokenSigner(account.private_key, "RS256");
  let known: { token: string; endMs: number } | undefined;
  let asking: Promise<string> | undefined;

  const ask = async (): Promise<string> => {
    const nowSeconds = Math.floor(clock.nowMs() / 1000);
    const claims = {
      iss: account.client_email,
      scope: SCOPE,
      aud: account.token_uri,
      iat: nowSeconds,
      exp: nowSeconds + 3600,
    };
    const response = await fetch(account.token_uri, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ grant_type: GRANT, assertion: signToken({ typ: "JWT" }, claims) }).toString(),
      signal: AbortSignal.timeout(SEND_DEADLINE_MS),
      redirect: "error",
    });
    if (!response.ok) throw new Error(`an access token was refused: ${response.status}`);
    const reply = (await response.json()) as { access_token?: unknown; expires_in?: unknown };
    if (typeof reply.access_token !== "string" || typeof reply.expires_in !== "number")
      throw new Error("the answer to a request for an access token has none");
    known = { token: reply.access_token, endMs: clock.nowMs() + reply.expires_in * 1000 };
    return known.token;
  };

  return {
    current(): Promise<string> {
      if (known && clock.nowMs() < known.endMs - RENEW_MS) return Promise.resolve(known.token);
      asking ??= ask().finally(() => {
        asking = undefined;
      });
      return asking;
    },
    forget(): void {
      known = undefined;
    },
  };
}
