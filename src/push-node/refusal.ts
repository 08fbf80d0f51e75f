import { PUSH_NODE_ERRORS, type PushNodeErrorCode } from "../protocol/push-node.ts";

/** Why the node refuses a request; the message may be shown to people. */
export class Refusal extends Error {
  readonly code: PushNodeErrorCode;
  readonly retryAfterMs: number | undefined;

  constructor(code: PushNodeErrorCode, message: string = PUSH_NODE_ERRORS[code].message, retryAfterMs?: number) {
    super(message);
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }

  toResponse(): Response {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (this.retryAfterMs !== undefined) headers["retry-after"] = String(Math.ceil(this.retryAfterMs / 1000));
    const body = JSON.stringify({ error: { code: this.code, message: this.message } });
    return new Response(body, { status: PUSH_NODE_ERRORS[this.code].status, headers });
  }
}
