import { JetStreamApiError } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";
import { SvcError } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";

/** JetStream's error numbers that decide something here. */
export const JS_ERROR = {
  streamNotFound: 10059,
  /** Compare-and-append lost: somebody appended since. The second one is a leader that does not know yet. */
  wrongLastSequence: 10071,
  wrongLastSequenceUnknown: 10164,
  /** A write-once subject has its message already. */
  maximumPerSubjectExceeded: 10077,
  streamNameInUse: 10058,
  /** No room: on the server's disk, or within what the account may use. */
  resourcesExceeded: 10002,
  insufficientResources: 10023,
  storageExceeded: 10047,
} as const;

/** The library wraps what happened in a RequestError; this is what happened. */
function unwrap(error: unknown): unknown {
  let inner = error;
  while (inner instanceof errors.RequestError && inner.cause !== undefined) inner = inner.cause;
  return inner;
}

/** JetStream's own error number, or undefined when it was not JetStream that refused. */
export function jetStreamCode(error: unknown): number | undefined {
  const inner = unwrap(error);
  return inner instanceof JetStreamApiError ? inner.code : undefined;
}

export const isConflict = (error: unknown): boolean => {
  const code = jetStreamCode(error);
  return code === JS_ERROR.wrongLastSequence || code === JS_ERROR.wrongLastSequenceUnknown;
};

/** The network has no room left for what was published. */
export const isOutOfRoom = (error: unknown): boolean => {
  const code = jetStreamCode(error);
  return (
    code === JS_ERROR.resourcesExceeded || code === JS_ERROR.insufficientResources || code === JS_ERROR.storageExceeded
  );
};

export const isForbidden = (error: unknown): boolean => {
  if (error instanceof SvcError) return error.code === "network.forbidden";
  const inner = unwrap(error);
  return (
    inner instanceof errors.PermissionViolationError ||
    inner instanceof errors.AuthorizationError ||
    inner instanceof errors.UserAuthenticationExpiredError
  );
};

/** Nobody listens: JetStream is off for this account, or a stream is missing or without a leader. */
function hasNoResponders(error: unknown): boolean {
  for (let inner = error; inner instanceof Error; inner = inner.cause) {
    if (inner instanceof errors.NoRespondersError) return true;
    if (inner instanceof errors.RequestError && inner.isNoResponders()) return true;
  }
  return false;
}

/**
 * What a failure of the network is to callers: `network.forbidden` when the server refused these credentials,
 * `network.unavailable` otherwise. The message names the refusal, and who was refused, without payloads; the cause is for
 * the log.
 */
export function networkFailure(error: unknown, identity?: string): SvcError {
  if (error instanceof SvcError) return error;
  const inner = unwrap(error);
  if (inner instanceof errors.PermissionViolationError) {
    const why = refusal("network.not_allowed", { publish: inner.operation === "publish", subject: inner.subject });
    return new SvcError("network.forbidden", { refusal: why, cause: error });
  }
  if (isForbidden(inner)) {
    const why = refusal("network.not_admitted", identity === undefined ? {} : { identity });
    return new SvcError("network.forbidden", { refusal: why, cause: error });
  }
  if (inner instanceof JetStreamApiError) {
    const why = refusal("network.refused", { fault: inner.message, code: inner.code });
    return new SvcError("network.unavailable", { refusal: why, cause: error });
  }
  if (hasNoResponders(error)) {
    return new SvcError("network.unavailable", { refusal: refusal("network.no_responders"), cause: error });
  }
  return new SvcError("network.unavailable", { cause: error });
}
