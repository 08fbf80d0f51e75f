import type { JsonObject } from "../../protocol/json.ts";
import { ROW_ABSENT, ROW_LIVE, type RowHead, type RowState, type RowTable } from "../../store/row-table.ts";
import { ABSENT, type RecordState } from "./record-fold.ts";

/** A stored row or checkpoint as the fold takes it. */
export function toRecordState(state: RowState, doc: string | null): RecordState {
  if (state === ROW_ABSENT || doc === null) return ABSENT;
  return { kind: state === ROW_LIVE ? "live" : "tombstone", doc: JSON.parse(doc) as JsonObject };
}

/** The folded row as it stands, without what only this device has. */
export function foldedState(rows: Pick<RowTable, "local">, head: RowHead): RecordState {
  return toRecordState(head.state, head.hasLocal ? (rows.local(head.no)?.base ?? head.doc) : head.doc);
}
