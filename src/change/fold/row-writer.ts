import type { Json } from "../../protocol/json.ts";
import type { Checkpoint } from "../../store/rows/checkpoint-table.ts";
import type { NewRow } from "../../store/rows/row-insert.ts";
import type { RowTable } from "../../store/rows/row-table.ts";
import { ROW_ABSENT, ROW_LIVE, ROW_TOMBSTONE, type RowHead, type RowState } from "../../store/rows/row-types.ts";
import type { OrderKey } from "../graph/order.ts";
import { overlayLocal } from "./local-overlay.ts";
import type { RecordState } from "./record-fold.ts";

/** A row whose history is long is folded from the last checkpoint, not from its beginning; there is one every so many ops. */
const CHECKPOINT_EVERY_OPS = 256;
/** Of a document that is larger there are fewer in proportion, so that checkpoints take no more than ops are worth. */
const CHECKPOINTED_BYTES = 64 << 10;

/** Stores folded states as rows and, every so many ops, as checkpoints. */
export type RowWriter = ReturnType<typeof createRowWriter>;

export function createRowWriter(rows: RowTable, checkpointEveryOps = CHECKPOINT_EVERY_OPS) {
  const update = (
    head: Pick<RowHead, "no" | "collectionId" | "hasLocal">,
    state: RecordState,
    at: OrderKey,
    ops: number,
  ) => {
    if (state.kind === "absent") {
      rows.update(head, null, ROW_ABSENT, at.lamport, at.change, ops);
      return null;
    }
    const base = JSON.stringify(state.doc);
    const shown = head.hasLocal ? withLocal(head.no, base, state.kind === "live") : base;
    rows.update(head, shown, rowStateOf(state), at.lamport, at.change, ops);
    return state.kind === "live" ? shown : null;
  };

  /** Device-local fields stay with a live record and go with any other. */
  const withLocal = (row: number, base: string, isLive: boolean): string => {
    const local = rows.local(row);
    if (!local || !isLive) {
      rows.dropLocal(row);
      return base;
    }
    rows.putLocal(row, base, local.fields);
    return overlayLocal(base, JSON.parse(local.fields) as Record<string, Json>);
  };

  return {
    /** Answers the text that readers see, or null when the record is not live. */
    update,

    /** A row for a record that has none. */
    newRow(id: string, state: RecordState, at: OrderKey, ops: number): NewRow {
      const doc = state.kind === "absent" ? null : JSON.stringify(state.doc);
      return { id, doc, state: rowStateOf(state), lamport: at.lamport, change: at.change, ops };
    },

    isCheckpointDue(state: RecordState, opsBefore: number, ops: number): boolean {
      if (state.kind === "absent") return false;
      const bytes = state.kind === "live" ? state.bytesAtMost : 0;
      const every = checkpointEveryOps * (1 + Math.floor(bytes / CHECKPOINTED_BYTES));
      return Math.floor(ops / every) !== Math.floor(opsBefore / every);
    },

    /** The state must be that after the whole of the change at `at`: folding goes on with what comes behind it. */
    addCheckpoint(row: number, state: RecordState, at: OrderKey, ops: number): void {
      const doc = state.kind === "absent" ? null : JSON.stringify(state.doc);
      rows.addCheckpoint(row, { ...at, ops, state: rowStateOf(state), doc });
    },

    isAsCheckpointed(row: number, position: OrderKey, state: RecordState): boolean {
      const checkpoint: (Pick<Checkpoint, "doc"> & { state: number }) | undefined = rows.checkpointAt(row, position);
      return (
        checkpoint !== undefined &&
        state.kind !== "absent" &&
        checkpoint.state === rowStateOf(state) &&
        checkpoint.doc === JSON.stringify(state.doc)
      );
    },
  };
}

export function rowStateOf({ kind }: RecordState): RowState {
  return kind === "absent" ? ROW_ABSENT : kind === "live" ? ROW_LIVE : ROW_TOMBSTONE;
}
