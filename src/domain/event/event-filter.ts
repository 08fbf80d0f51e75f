import { type SvcError, svcError } from "../../protocol/errors.ts";
import {
  EVENT_SCOPES,
  EVENT_TYPE_GRAMMAR,
  type EventScope,
  isEventType,
  isTarget,
  TARGET_GRAMMAR,
} from "../../protocol/event.ts";
import type { EventInput } from "./port.ts";

/** Query of `GET /v1/events/subscribe`: each parameter may be repeated. */
export interface EventQuery {
  readonly scope?: readonly string[];
  readonly spaceId?: readonly string[];
  readonly type?: readonly string[];
  readonly target?: readonly string[];
}

/** What a stream wants: one of each dimension's values, in every dimension that has any. */
export interface EventFilter {
  readonly scopes: ReadonlySet<EventScope>;
  /** Of events of space scope. */
  readonly spaceIds: ReadonlySet<string>;
  /** Exact types. Neither these nor prefixes: any type. */
  readonly types: ReadonlySet<string>;
  /** `x` for the pattern `x.*`, which matches `x` and everything below it. */
  readonly prefixes: ReadonlySet<string>;
  readonly targets: ReadonlySet<string>;
}

/** Values of one dimension; a stream that wants more is better served by a pattern. */
const MAX_VALUES = 256;

/**
 * Reads a stream's filter. Without a scope it is device and account, or, where spaces are named, those spaces.
 * Errors: request.missing_field {field}; request.invalid_field {field, reason}.
 */
export function readEventFilter(query: EventQuery): EventFilter {
  const { scope = [], spaceId = [], type = [], target = [] } = query;
  for (const [field, values] of Object.entries({ scope, spaceId, type, target })) {
    if (values.length > MAX_VALUES) throw refusal(field, `at most ${MAX_VALUES} values; use a pattern such as x.*`);
  }
  for (const value of scope) {
    if (!EVENT_SCOPES.includes(value as EventScope))
      throw refusal("scope", `must be one of ${EVENT_SCOPES.join(", ")}`);
  }
  if (spaceId.includes("")) throw refusal("spaceId", "must not be empty");
  if (scope.includes("space") && spaceId.length === 0) {
    throw svcError("request.missing_field", { field: "spaceId" }, "The scope space needs a spaceId");
  }
  if (scope.length > 0 && spaceId.length > 0 && !scope.includes("space")) {
    throw refusal("spaceId", "belongs to the scope space, which scope leaves out");
  }
  const types = new Set<string>();
  const prefixes = new Set<string>();
  for (const value of type) {
    const isPattern = value.endsWith(".*");
    const slug = isPattern ? value.slice(0, -2) : value;
    if (!isEventType(slug)) throw refusal("type", `${EVENT_TYPE_GRAMMAR}, or one followed by .*`);
    (isPattern ? prefixes : types).add(slug);
  }
  for (const value of target) if (!isTarget(value)) throw refusal("target", TARGET_GRAMMAR);
  const scopes = scope.length > 0 ? scope : spaceId.length > 0 ? ["space"] : ["device", "account"];
  return {
    scopes: new Set(scopes as EventScope[]),
    spaceIds: new Set(spaceId),
    types,
    prefixes,
    targets: new Set(target),
  };
}

/** Whether a stream with this filter is to see an event. */
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

function refusal(field: string, reason: string): SvcError {
  return svcError("request.invalid_field", { field, reason }, `The field ${field} is refused: it ${reason}`);
}
