import type { Json } from "../../protocol/json.ts";
import type { CallError } from "../../sandbox/program-protocol.ts";

/** The codes with which a call of the host API fails, besides those of the HTTP interface. */
type RuntimeCode =
  | "host.unknown_call"
  | "host.reply_too_large"
  | "host.written_too_much"
  | "host.run_over"
  | "http.forbidden"
  | "http.failed"
  | "http.too_large"
  | "llm.disabled"
  | "llm.unavailable"
  | "llm.bad_reply"
  | "llm.context_exceeded";

/** A failed call, as the program that made it sees it. */
export class CallFailure extends Error {
  readonly error: CallError;
  constructor(code: RuntimeCode | (string & {}), message: string, details?: Json) {
    super(message);
    this.error = { code, message, ...(details === undefined ? {} : { details }) };
  }
}

/** A limit on cost was reached: the whole run ends, not only the call. */
export class CostExceeded extends Error {}
