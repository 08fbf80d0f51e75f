/** Apple's push service as its provider API describes it: HTTP/2, provider tokens verified, the documented errors. */
import { createVerify, generateKeyPairSync } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import type { ApnsCredentials } from "../../../src/push-node/apns.ts";

interface ApnsPayload {
  aps: Record<string, unknown>;
  v: string;
  kind: string;
  spaceKey: string;
  keyId: string;
  sealed: string;
}
interface Arrival {
  readonly token: string;
  readonly headers: IncomingHttpHeaders;
  readonly payload: ApnsPayload;
  readonly atMs: number;
}
/** What a token's next notifications are answered with; undefined: accepted. `goaway`: accepted, and the session retired. */
type Fault =
  | { status: number; reason: string; timestamp?: number; retryAfter?: string }
  | "hang"
  | "goaway"
  | undefined;

export interface FakeApns extends AsyncDisposable {
  readonly url: string;
  readonly accepted: Arrival[];
  readonly traffic: string[];
  readonly providerTokens: Set<string>;
  sessions: number;
  fail(token: string, faults: Fault[], forever?: boolean): void;
  of(token: string): Arrival[];
}

const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const TEAM = "TEAM123456";
const KEY_ID = "KEY1234567";
const APP = "org.example.app";

export const apnsCredentials: ApnsCredentials = {
  keyPem: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  keyId: KEY_ID,
  teamId: TEAM,
  topic: APP,
};

/** `knows`: whether a token is of this environment; by default every one is. */
export async function startFakeApns(knows: (token: string) => boolean = () => true): Promise<FakeApns> {
  const accepted: Arrival[] = [];
  const traffic: string[] = [];
  const providerTokens = new Set<string>();
  const scripts = new Map<string, { faults: Fault[]; forever: boolean }>();
  const open = new Set<ServerHttp2Session>();
  const server = createServer();
  server.on("session", (session) => {
    fake.sessions++;
    open.add(session);
    session.on("close", () => open.delete(session));
    session.on("error", () => {});
  });
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    let text = "";
    stream.setEncoding("utf8");
    stream.on("error", () => {});
    stream.on("data", (chunk: string) => {
      text += chunk;
    });
    stream.on("end", () => {
      traffic.push(`${JSON.stringify(headers)}\n${text}`);
      answer(stream, headers, text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  function answer(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, text: string): void {
    const token = decodeURIComponent(String(headers[":path"]).replace("/3/device/", ""));
    const fault = faultOf(headers, token, text);
    if (fault === "hang") return;
    if (fault && fault !== "goaway") {
      const { status, reason, timestamp, retryAfter } = fault;
      stream.respond({ ":status": status, ...(retryAfter === undefined ? {} : { "retry-after": retryAfter }) });
      stream.end(JSON.stringify({ reason, ...(timestamp === undefined ? {} : { timestamp }) }));
      return;
    }
    accepted.push({ token, headers, payload: JSON.parse(text) as ApnsPayload, atMs: Date.now() });
    stream.respond({ ":status": 200, "apns-id": String(headers["apns-id"]) });
    stream.end();
    if (fault === "goaway") stream.session?.goaway();
  }

  function faultOf(headers: IncomingHttpHeaders, token: string, text: string): Fault {
    if (!isProviderToken(String(headers["authorization"]))) return { status: 403, reason: "InvalidProviderToken" };
    if (headers["apns-topic"] !== APP) return { status: 400, reason: "DeviceTokenNotForTopic" };
    if (String(headers["apns-collapse-id"]).length > 64) return { status: 400, reason: "BadCollapseId" };
    if (Buffer.byteLength(text) > 4096) return { status: 413, reason: "PayloadTooLarge" };
    if (!knows(token)) return { status: 400, reason: "BadDeviceToken" };
    const script = scripts.get(token);
    return script && (script.forever && script.faults.length === 1 ? script.faults[0] : script.faults.shift());
  }

  function isProviderToken(authorization: string): boolean {
    const token = authorization.replace("bearer ", "");
    const [header = "", claims = "", signature = ""] = token.split(".");
    providerTokens.add(token);
    try {
      const { iss, iat } = JSON.parse(Buffer.from(claims, "base64url").toString());
      const { kid, alg } = JSON.parse(Buffer.from(header, "base64url").toString());
      const verifier = createVerify("sha256").update(`${header}.${claims}`);
      const key = { key: publicKey, dsaEncoding: "ieee-p1363" as const };
      const fresh = Math.abs(Date.now() / 1000 - iat) < 3600;
      return iss === TEAM && kid === KEY_ID && alg === "ES256" && fresh && verifier.verify(key, signature, "base64url");
    } catch {
      return false;
    }
  }

  const fake: FakeApns = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    accepted,
    traffic,
    providerTokens,
    sessions: 0,
    fail: (token, faults, forever = false) => void scripts.set(token, { faults: [...faults], forever }),
    of: (token) => accepted.filter((arrival) => arrival.token === token),
    [Symbol.asyncDispose]: async () => {
      for (const session of open) session.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  return fake;
}
