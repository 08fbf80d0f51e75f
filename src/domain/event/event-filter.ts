import { refusedAs, refusedPart, type SvcError } from "../../protocol/errors.ts";
import { EVENT_SCOPES, type EventScope, isEventType, isTarget } from "../../protocol/event.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { EventInput } from "./port.ts";

/** Query of `GET /v1/events/subscribe`: each parameter may be repeated. */
export interface EventQuery {
  readonly scope?: readonly string[];
  readonly spaceId?: readonly string[];
  readonly type?: readonly string[];
  readonly target?: readonly string[];
}

/** What a stream wants: an event must have one of the values in every dimension that has any. */
export interface EventFilter {
  readonly scopes: ReadonlySet<EventScope>;
  /** The spaces whose events pass; events of another scope need none. */
  readonly spaceIds: ReadonlySet<string>;
  /** Exact types. Any type, if there are neither types nor prefixes. */
  readonly types: ReadonlySet<string>;
  /** `x` for the pattern `x.*`, which matches `x` and everything below it. */
  readonly prefixes: ReadonlySet<string>;
  readonly targets: ReadonlySet<string>;
}

/** How many values one dimension may have; a stream that wants more should use a pattern. */
const MAX_VALUES = 256;

/**
 * Reads a stream's filter. Without a scope, the scopes are device and account or, where spaces are named, those spaces. Errors:
 * request.missing_field {field}; request.invalid_field {field, reason}.
 */
export function readEventFilter(query: EventQuery): EventFilter {
  const { scope = [], spaceId = [], type = [], target = [] } = query;
  for (const [field, values] of Object.entries({ scope, spaceId, type, target })) {
    if (values.length > MAX_VALUES) throw refused(field, refusal("event.values", { limit: MAX_VALUES }));
  }
  for (const value of scope) {
    if (!EVENT_SCOPES.includes(value as EventScope))
      throw refused("scope", refusal("value.must_be_one_of", { values: EVENT_SCOPES }));
  }
  if (spaceId.includes("")) throw refused("spaceId", refusal("value.empty"));
  if (scope.includes("space") && spaceId.length === 0) {
    throw refusedAs("request.missing_field", { field: "spaceId" }, refusal("event.no_space"));
  }
  if (scope.length > 0 && spaceId.length > 0 && !scope.includes("space")) {
    throw refused("spaceId", refusal("event.space_scope_left_out"));
  }
  const types = new Set<string>();
  const prefixes = new Set<string>();
  for (const value of type) {
    const isPattern = value.endsWith(".*");
    const slug = isPattern ? value.slice(0, -2) : value;
    if (!isEventType(slug)) throw refused("type", refusal("event.type_or_pattern"));
    (isPattern ? prefixes : types).add(slug);
  }
  for (const value of target) if (!isTarget(value)) throw refused("target", refusal("event.target"));
  const scopes = scope.length > 0 ? scope : spaceId.length > 0 ? ["space"] : ["device", "account"];
  return {
    scopes: new Set(scopes as EventScope[]),
    spaceIds: new Set(spaceId),
    types,
    prefixes,
    targets: new Set(target),
  };
}

/** Whether a stream with this filter receives an event. */
export function matchesFilter(filter: EventFilter, event: EventInput): boolean {
  if (!filter.scopes.has(event.scope)) return false;
  if (event.scope === "space" && !filter.spaceIds.has(event.spaceId!)) return false;
  if (filter.targets.size > 0 && (event.target === undefined || !filter.targets.has(event.target))) return false;
  if (filter.types.size + filter.prefixes.size === 0 || filter.types.has(event.type)) return true;
  return filter.prefixes.size > 0 && hasPrefix(filter.prefixes, event.type);
}

function hasPrefix(prefixes: ReadonlySet<string>, type: string): boolean {
  for (let end = type.length; end > 0; end = type.lastIndexOf(".", end - 1)) {
    if (prefixes.has(type.slice(0, end))) return true;
  }
  return false;
}

const refused = (field: string, why: Refusal): SvcError => refusedPart("request.invalid_field", { field }, why, "it");
