import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { bytesToBase64Url, utf8ToBytes } from "../base/bytes.ts";
import { createEvents } from "../base/events.ts";
import { retryAfterMs } from "../base/retry-after.ts";
import type { Signer } from "../crypto/sign.ts";
import { ChallengeReply, PUSH_HEADERS, PUSH_PATHS, type PushNodeErrorCode } from "../protocol/push-node.ts";
import { requestStatement } from "./statements.ts";

/** A node's refusal, or the fault that kept it from answering; then `status` is 0. */
export class NodeFault extends Error {
  readonly status: number;
  readonly code: PushNodeErrorCode | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, status: number, code?: PushNodeErrorCode, retryAfterMs?: number) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

export interface NodeCalls {
  /** Origin of the node's URL, which signed statements name. */
  readonly audience: string;
  /**
   * Makes one signed request; `reply` is the schema of its answer. Rejects with NodeFault on a refusal, a fault, or an
   * answer that does not match.
   */
  post<T extends TSchema>(path: string, reply: T, body: object): Promise<Static<T>>;
  /** Calls back when the node answers with another state than before, so it may have lost what it knew. */
  onOtherState(listener: () => void): void;
}

interface NodeCallsDeps {
  readonly url: string;
  readonly account: string;
  readonly signer: Signer;
  readonly timeoutMs: number;
  /** Aborts requests under way. */
  readonly signal?: AbortSignal;
}

/** Most challenges kept for later requests; every answer brings one. */
const MAX_CHALLENGES = 8;
const MAX_REPLY_BYTES = 1 << 20;

const RefusalReply = Type.Object({
  error: Type.Object({ code: Type.String({ maxLength: 100 }), message: Type.String({ maxLength: 10_000 }) }),
});

/** Creates calls to a push node. The account signs each call over a fresh challenge. */
export function createNodeCalls(deps: NodeCallsDeps): NodeCalls {
  const audience = new URL(deps.url).origin;
  const base = deps.url.replace(/\/+$/, "");
  const challenges: string[] = [];
  const events = createEvents<{ otherState: [] }>();
  let state: string | undefined;

  const send = async (path: string, body: Uint8Array, headers: Record<string, string>): Promise<Response> => {
    const timeout = AbortSignal.timeout(deps.timeoutMs);
    try {
      return await fetch(base + path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: body as Uint8Array<ArrayBuffer>,
        signal: deps.signal ? AbortSignal.any([deps.signal, timeout]) : timeout,
        redirect: "error",
      });
    } catch (error) {
      throw new NodeFault(`the push node cannot be reached: ${(error as Error).message}`, 0);
    }
  };

  const freshChallenge = async (): Promise<string> => {
    const body = utf8ToBytes(JSON.stringify({ account: deps.account }));
    const { challenge } = await replyOf(ChallengeReply, await send(PUSH_PATHS.challenge, body, {}));
    return challenge;
  };

  const noteState = (tag: string | null): void => {
    if (tag === null) return; // the request did not reach the node's own code
    const isOther = state !== undefined && state !== tag;
    state = tag;
    if (isOther) events.emit("otherState");
  };

  const attempt = async <T extends TSchema>(
    path: string,
    reply: T,
    body: Uint8Array,
    challenge: string,
  ): Promise<Static<T>> => {
    const statement = requestStatement({ audience, path, account: deps.account, challenge, body });
    const response = await send(path, body, {
      [PUSH_HEADERS.account]: deps.account,
      [PUSH_HEADERS.challenge]: challenge,
      [PUSH_HEADERS.signature]: bytesToBase64Url(deps.signer.sign("push-request", statement)),
    });
    const next = response.headers.get(PUSH_HEADERS.challenge);
    if (Value.Check(ChallengeReply, { challenge: next }) && challenges.length < MAX_CHALLENGES) challenges.push(next!);
    noteState(response.headers.get(PUSH_HEADERS.state));
    return replyOf(reply, response);
  };

  return {
    audience,
    onOtherState: (listener) => void events.on("otherState", listener),
    async post<T extends TSchema>(path: string, reply: T, value: object): Promise<Static<T>> {
      const body = utf8ToBytes(JSON.stringify(value));
      const kept = challenges.pop();
      try {
        return await attempt(path, reply, body, kept ?? (await freshChallenge()));
      } catch (error) {
        // The kept challenge may have expired, or the node lost its secret.
        if (kept === undefined || !(error instanceof NodeFault) || error.status !== 401) throw error;
        challenges.length = 0;
        return attempt(path, reply, body, await freshChallenge());
      }
    },
  };
}

async function replyOf<T extends TSchema>(schema: T, response: Response): Promise<Static<T>> {
  let text: string;
  try {
    text = await boundedText(response);
  } catch (error) {
    throw new NodeFault(`the push node's answer broke off: ${(error as Error).message}`, 0);
  }
  const value = parse(text);
  if (response.ok) {
    if (Value.Check(schema, value)) return value;
    // This is the page of a proxy, or of a network that wants a login first. Nothing was done, and the call is tried
    // again.
    throw new NodeFault("what answers is no push node, or one of another version", 0);
  }
  const { error } = Value.Check(RefusalReply, value) ? value : {};
  throw new NodeFault(
    `the push node refuses: ${error?.message ?? response.status}`,
    response.status,
    error?.code as PushNodeErrorCode | undefined,
    retryAfterMs(response.headers.get("retry-after"), Date.now()),
  );
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > MAX_REPLY_BYTES) throw new Error("it is too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Returns undefined for an empty text, null for a text that is not JSON. */
function parse(text: string): unknown {
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch {
    return null;
  }
}
