import { refusedAs, refusedPart, type SvcError, svcError } from "../../protocol/errors.ts";
import { type EventScope, isEventType, isTarget } from "../../protocol/event.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { topicFault } from "./event-topic.ts";
import type { EventInput } from "./port.ts";

/**
 * Checks an event to be published (EVENT-2).
 * Errors: request.missing_field {field}; request.invalid_field {field, reason}; events.payload_too_large {limitBytes}.
 */
export function checkEvent(input: EventInput): void {
  if (!isEventType(input.type)) throw refused("type", refusal("event.type"));
  if (input.target !== undefined && !isTarget(input.target)) throw refused("target", refusal("event.target"));
  checkScope(input.scope, input.spaceId);
  const fault = topicFault(input.type, input.target);
  if (fault !== undefined) throw refused("type", fault);
  if (input.data !== undefined && Buffer.byteLength(JSON.stringify(input.data)) > LIMITS.eventDataBytes) {
    throw svcError("events.payload_too_large", { limitBytes: LIMITS.eventDataBytes });
  }
}

/** A space is named exactly for space scope. Errors: request.missing_field {field}; request.invalid_field {field, reason}. */
function checkScope(scope: EventScope, spaceId: string | undefined): void {
  if (scope === "space" && (spaceId ?? "") === "") {
    throw refusedAs("request.missing_field", { field: "spaceId" }, refusal("event.no_space"));
  }
  if (scope !== "space" && spaceId !== undefined) throw refused("spaceId", refusal("event.space_scope_alone"));
}

const refused = (field: string, why: Refusal): SvcError => refusedPart("request.invalid_field", { field }, why, "it");
