import type { Json } from "../../protocol/json.ts";
import type { CallError } from "../../sandbox/program-protocol.ts";

/** What a call of the host API fails with beside the codes of the HTTP interface. */
type RuntimeCode =
  | "host.unknown_call"
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

/** A limit on money was reached: the run ends, not the call alone. */
export class CostExceeded extends Error {}
