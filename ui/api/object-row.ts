/** Reads the fields of a row of the objects collection. */
import type { Json } from "../../src/protocol/json.ts";
import type { AnyRecord } from "./api-client.ts";

/** A type's own row has this in place of types. */
export const TYPE_MARKER = "__type__";

/** An object's name, or the end of its id if it has none. */
export function objectTitle(record: AnyRecord): string {
  return objectName(record) || `Unnamed …${record.id.slice(-6)}`;
}

export function objectName(record: AnyRecord): string {
  const name = shared(record, "name");
  return typeof name === "string" ? name : "";
}

export function objectTypes(record: AnyRecord): string[] {
  const types = shared(record, "types");
  return Array.isArray(types) ? types.filter((type) => typeof type === "string") : [];
}

/** A property every object has, under `svc`. */
function shared(record: AnyRecord, name: string): Json | undefined {
  const group = record["svc"];
  return typeof group === "object" && group !== null && !Array.isArray(group) ? group[name] : undefined;
}

/** The counters in a chat's row; an absent counter is 0. */
export function chatCounters(row: AnyRecord): { unread: number; mentions: number; reactions: number } {
  const chat = row["chat"];
  const read = (name: string): number => {
    const value = typeof chat === "object" && chat !== null && !Array.isArray(chat) ? chat[name] : undefined;
    return typeof value === "number" ? value : 0;
  };
  return {
    unread: read("unreadCount"),
    mentions: read("unreadMentions"),
    reactions: read("unreadReactionsCount"),
  };
}
