/** The filter for events, as the address holds it. */
import type { EventScope } from "../../src/protocol/event.ts";

export interface EventFilter {
  /** Empty: every scope that needs no space. */
  scope: EventScope | "";
  spaceId: string;
  /** Exact types or `x.*`, separated by commas. */
  type: string;
  target: string;
}

export function readEventFilter(params: URLSearchParams): EventFilter {
  const scope = params.get("scope") ?? "";
  return {
    scope: scope === "device" || scope === "account" || scope === "space" ? scope : "",
    spaceId: params.get("spaceId") ?? "",
    type: params.get("type") ?? "",
    target: params.get("target") ?? "",
  };
}

/** The path of a stream of the events that match a filter. */
export function eventStreamPath(filter: EventFilter): string {
  const query = new URLSearchParams();
  if (filter.scope !== "") query.append("scope", filter.scope);
  if (filter.scope === "space" && filter.spaceId !== "") query.append("spaceId", filter.spaceId);
  for (const type of listOf(filter.type)) query.append("type", type);
  for (const target of listOf(filter.target)) query.append("target", target);
  const text = query.toString();
  return `/v1/events/subscribe${text === "" ? "" : `?${text}`}`;
}

function listOf(text: string): string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
}
