import { type SvcError, svcError } from "../../protocol/errors.ts";
import { EVENT_TYPE_GRAMMAR, type EventScope, isEventType, isTarget, TARGET_GRAMMAR } from "../../protocol/event.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { topicFault } from "./event-topic.ts";
import type { EventInput } from "./port.ts";

/**
 * Checks an event to be published (EVENT-2).
 * Errors: request.missing_field {field}; request.invalid_field {field, reason}; events.payload_too_large {limitBytes}.
 */
export function checkEvent(input: EventInput): void {
  if (!isEventType(input.type)) throw refusal("type", EVENT_TYPE_GRAMMAR);
  if (input.target !== undefined && !isTarget(input.target)) throw refusal("target", TARGET_GRAMMAR);
  checkScope(input.scope, input.spaceId);
  const fault = topicFault(input.type, input.target);
  if (fault !== undefined) throw refusal("type", fault);
  if (input.data !== undefined && Buffer.byteLength(JSON.stringify(input.data)) > LIMITS.eventDataBytes) {
    throw svcError("events.payload_too_large", { limitBytes: LIMITS.eventDataBytes });
  }
}

/** Scope and space go together. Errors: request.missing_field {field}; request.invalid_field {field, reason}. */
function checkScope(scope: EventScope, spaceId: string | undefined): void {
  if (scope === "space" && (spaceId ?? "") === "") {
    throw svcError("request.missing_field", { field: "spaceId" }, "The scope space needs a spaceId");
  }
  if (scope !== "space" && spaceId !== undefined) throw refusal("spaceId", "belongs to the scope space alone");
}

function refusal(field: string, reason: string): SvcError {
  return svcError("request.invalid_field", { field, reason }, `The field ${field} is refused: it ${reason}`);
}
