import { refusedAs, refusedPart, type SvcError } from "../../protocol/errors.ts";
import {
  isTarget,
  type ProcessError,
  type ProcessFinishBody,
  type ProcessProgressBody,
  type ProcessStartBody,
} from "../../protocol/event.ts";
import { isJsonObject } from "../../protocol/json.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";

/** What the texts of a process may take, in bytes. */
const MAX_BYTES = { kind: 128, title: 256, message: 1024, code: 128 } as const;

/**
 * Checks the start of a process, its JSON types already checked; scope and space are checked when it is published.
 * Errors of all checks here: request.missing_field {field}; request.invalid_field {field, reason, limitBytes?}.
 */
export function checkStart({ id, kind, title, target }: ProcessStartBody): void {
  if (!isTarget(id)) throw refused("id", refusal("event.target"));
  for (const [field, value] of [
    ["kind", kind],
    ["title", title],
  ] as const) {
    if (value === "") throw refused(field, refusal("value.empty"));
    refuseLonger(field, value);
  }
  if (target !== undefined && !isTarget(target)) throw refused("target", refusal("event.target"));
}

export function checkProgress({ done, total, message }: ProcessProgressBody): void {
  for (const [field, value] of [
    ["done", done],
    ["total", total],
  ] as const) {
    if (value !== undefined && !isAmount(value)) throw refused(field, refusal("process.amount"));
  }
  if (message !== undefined) refuseLonger("message", message);
}

/** The error of a failed process; undefined for any other end. */
export function checkFinish({ status, error }: ProcessFinishBody): ProcessError | undefined {
  if (status !== "failed") {
    if (error !== undefined) throw refused("error", refusal("process.failed_alone"));
    return undefined;
  }
  if (error === undefined) {
    throw refusedAs("request.missing_field", { field: "error" }, refusal("process.no_error"));
  }
  const { fault, value } = readError(error);
  if (fault !== undefined) throw refused("error", fault);
  return value;
}

/** The error in a request or a frame, or what is wrong with it. */
export function readError(error: unknown): { value?: ProcessError; fault?: Refusal } {
  if (!isJsonObject(error)) return { fault: refusal("process.error_object") };
  const { code, message, ...more } = error as { code?: unknown; message?: unknown };
  if (Object.keys(more).length > 0) return { fault: refusal("process.error_parts") };
  if (message === "" || !isTextWithin(message, "message")) {
    return { fault: refusal("process.error_message", { limitBytes: MAX_BYTES.message }) };
  }
  if (code === undefined) return { value: { message } };
  if (code === "" || !isTextWithin(code, "code"))
    return { fault: refusal("process.error_code", { limitBytes: MAX_BYTES.code }) };
  return { value: { code, message } };
}

/** A count of what is done or to do: finite, not negative. */
export function isAmount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

export function isTextWithin(value: unknown, part: keyof typeof MAX_BYTES): value is string {
  return typeof value === "string" && Buffer.byteLength(value) <= MAX_BYTES[part];
}

function refuseLonger(field: "kind" | "title" | "message", value: string): void {
  if (isTextWithin(value, field)) return;
  const limitBytes = MAX_BYTES[field];
  throw refusedPart("request.invalid_field", { field, limitBytes }, refusal("value.too_long", { limitBytes }), "long");
}

const refused = (field: string, why: Refusal): SvcError => refusedPart("request.invalid_field", { field }, why, "it");
