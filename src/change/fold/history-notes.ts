import type { HistoryTable } from "../../store/tables/history-table.ts";
import type { ObjectEntry } from "../graph/object-cache.ts";
import type { FoldInput, ReplayInput } from "./change-parts.ts";
import { traceKeys } from "./trace-key.ts";

/** Notes each change's position in its object's graph, and its traces: what the history is listed by. */
export type HistoryNotes = ReturnType<typeof createHistoryNotes>;

/** Without a table the space keeps no history. */
export function createHistoryNotes(history: HistoryTable | undefined, datasetNo: (name: string) => number) {
  const add = (
    change: ReplayInput["change"],
    parents: readonly number[],
    object: ObjectEntry,
    shown: { datasetNo: number; hidden: boolean },
  ): void =>
    history?.add(object.no, {
      change: change.no,
      lamport: change.lamport,
      writer: change.writer,
      timeMs: change.timeMs,
      parents,
      ...shown,
    });

  return {
    note({ change, parents, object, body, rules }: FoldInput): void {
      if (!history) return;
      const hidden = rules.skipHistory === true;
      add(change, parents, object, { datasetNo: datasetNo(body.dataset), hidden });
      if (hidden) return;
      for (const trace of traceKeys(body.traceIds)) history.addTrace(object.no, trace, change.lamport, change.no);
    },
    /** A change that is in the graph, but cannot be read yet. */
    notePendingBody: (change: ReplayInput["change"], parents: readonly number[], object: ObjectEntry): void =>
      add(change, parents, object, { datasetNo: 0, hidden: true }),
  };
}
