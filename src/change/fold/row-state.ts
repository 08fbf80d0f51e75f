import type { JsonObject } from "../../protocol/json.ts";
import type { RowTable } from "../../store/rows/row-table.ts";
import { ROW_ABSENT, ROW_LIVE, type RowHead, type RowState } from "../../store/rows/row-types.ts";
import { ABSENT, type RecordState } from "./record-fold.ts";
import { bytesAtMostOf } from "./record-size.ts";

/** A stored row or checkpoint as the fold takes it. */
export function toRecordState(state: RowState, doc: string | null): RecordState {
  if (state === ROW_ABSENT || doc === null) return ABSENT;
  const parsed = JSON.parse(doc) as JsonObject;
  return state === ROW_LIVE
    ? { kind: "live", doc: parsed, bytesAtMost: bytesAtMostOf(doc) }
    : { kind: "tombstone", doc: parsed };
}

/** The folded row as it stands, without what only this device has. */
export function foldedState(rows: Pick<RowTable, "local">, head: RowHead): RecordState {
  return toRecordState(head.state, head.hasLocal ? (rows.local(head.no)?.base ?? head.doc) : head.doc);
}
