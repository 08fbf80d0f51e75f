/**
 * Firebase Cloud Messaging as its HTTP v1 reference describes it: an OAuth token endpoint that verifies the service account's
 * assertion, and `messages:send` with the documented error bodies.
 */
import { createVerify, generateKeyPairSync } from "node:crypto";
import type { ServiceAccount } from "../../../src/push-node/fcm.ts";

interface FcmMessage {
  token: string;
  data: Record<string, string>;
  android: { priority: string; ttl: string; collapse_key: string };
}
interface Arrival {
  readonly message: FcmMessage;
  readonly bodyBytes: number;
  readonly atMs: number;
}
/** What a token's next messages are answered with; undefined: accepted. */
type Fault = { status: number; body?: object; retryAfter?: string } | "hang" | undefined;

export interface FakeFcm extends Disposable {
  readonly url: string;
  readonly account: ServiceAccount;
  /** What was accepted, in order. */
  readonly accepted: Arrival[];
  /** Everything that was asked, headers and all, as text. */
  readonly traffic: string[];
  tokensIssued: number;
  /** Access tokens that were issued stop working. */
  revokeAccess(): void;
  /** Faults of a token, one after the other; the last one stays when `forever`. */
  fail(token: string, faults: Fault[], forever?: boolean): void;
  of(token: string): Arrival[];
}

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });

export const fcmError = (status: number, code: string, more: object[] = []): Fault => ({
  status,
  body: {
    error: {
      code: status,
      status: code,
      message: code,
      details: [{ "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", errorCode: code }, ...more],
    },
  },
});
/** The 400 that names the token. */
export const fcmBadToken = fcmError(400, "INVALID_ARGUMENT", [
  {
    "@type": "type.googleapis.com/google.rpc.BadRequest",
    fieldViolations: [{ field: "message.token", description: "Invalid registration token" }],
  },
]);

export function startFakeFcm(): FakeFcm {
  const accepted: Arrival[] = [];
  const traffic: string[] = [];
  const faultsByToken = new Map<string, { faults: Fault[]; forever: boolean }>();
  const issued = new Set<string>();
  let count = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const text = await request.text();
      const { pathname } = new URL(request.url);
      traffic.push(`${request.method} ${pathname} ${JSON.stringify([...request.headers])}\n${text}`);
      if (pathname === "/token") return issue(new URLSearchParams(text));
      if (pathname !== "/v1/projects/fake-project/messages:send") return new Response(null, { status: 404 });
      const bearer = request.headers.get("authorization")?.replace("Bearer ", "") ?? "";
      if (!issued.has(bearer)) return faulty(fcmError(401, "UNAUTHENTICATED"));
      return take((JSON.parse(text) as { message: FcmMessage }).message, text.length);
    },
  });
  const url = `http://127.0.0.1:${server.port}`;
  const account: ServiceAccount = {
    project_id: "fake-project",
    client_email: "push@fake-project.iam.gserviceaccount.com",
    private_key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    token_uri: `${url}/token`,
  };

  function issue(form: URLSearchParams): Response {
    const [header = "", claims = "", signature = ""] = (form.get("assertion") ?? "").split(".");
    const verifier = createVerify("sha256").update(`${header}.${claims}`);
    const { iss, aud, exp } = JSON.parse(Buffer.from(claims, "base64url").toString());
    const good =
      form.get("grant_type") === "urn:ietf:params:oauth:grant-type:jwt-bearer" &&
      verifier.verify(publicKey, Buffer.from(signature, "base64url")) &&
      iss === account.client_email &&
      aud === account.token_uri &&
      exp * 1000 > Date.now();
    if (!good) return Response.json({ error: "invalid_grant" }, { status: 400 });
    fake.tokensIssued++;
    const token = `access-${++count}`;
    issued.add(token);
    return Response.json({ access_token: token, expires_in: 3600, token_type: "Bearer" });
  }

  async function take(message: FcmMessage, bodyBytes: number): Promise<Response> {
    const dataBytes = Buffer.byteLength(JSON.stringify(message.data));
    if (dataBytes > 4096) return faulty(fcmError(400, "INVALID_ARGUMENT"));
    const script = faultsByToken.get(message.token);
    const fault = script && (script.forever && script.faults.length === 1 ? script.faults[0] : script.faults.shift());
    if (fault === "hang") return new Promise(() => {});
    if (fault) return faulty(fault);
    accepted.push({ message, bodyBytes, atMs: Date.now() });
    return Response.json({ name: `projects/fake-project/messages/${accepted.length}` });
  }

  const faulty = (fault: Fault): Response => {
    const { status, body, retryAfter } = fault as Exclude<Fault, string | undefined>;
    return Response.json(body ?? {}, {
      status,
      headers: retryAfter === undefined ? {} : { "retry-after": retryAfter },
    });
  };

  const fake: FakeFcm = {
    url,
    account,
    accepted,
    traffic,
    tokensIssued: 0,
    revokeAccess: () => issued.clear(),
    fail: (token, faults, forever = false) => void faultsByToken.set(token, { faults: [...faults], forever }),
    of: (token) => accepted.filter(({ message }) => message.token === token),
    [Symbol.dispose]: () => void server.stop(true),
  };
  return fake;
}
