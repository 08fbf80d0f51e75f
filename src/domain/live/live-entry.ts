import type { RecordPart } from "./live-record.ts";

/** `deleted`: tombstoned; `filtered-out`: there, but no longer matching; `displaced`: matching, but out of the window. */
export type RemovalReason = "deleted" | "filtered-out" | "displaced";

/** What became of one record of a window. */
export type LiveItem =
  | { readonly kind: "added" | "updated"; readonly part: RecordPart }
  | { readonly kind: "removed"; readonly id: string; readonly reason: RemovalReason };

/** One write, as a window sees it. A commit has at most one entry for a record. */
export interface LiveEntry {
  /** The version of the write; empty when an object was deleted. */
  readonly versionId: string;
  readonly items: LiveItem[];
}

export function itemId(item: LiveItem): string {
  return item.kind === "removed" ? item.id : item.part.id;
}

/** About how many characters the item has as text. */
export function itemChars(item: LiveItem): number {
  return item.kind === "removed" ? itemText(item).length : item.part.chars;
}

/** The item as JSON text. */
export function itemText(item: LiveItem): string {
  if (item.kind !== "removed") return item.part.text;
  return `{"id":${JSON.stringify(item.id)},"reason":"${item.reason}"}`;
}
