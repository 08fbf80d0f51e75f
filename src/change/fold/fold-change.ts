import type { Refusal } from "../../protocol/refusals.ts";
import type { RowTable } from "../../store/row-table.ts";
import { ROW_LIVE, type RowState } from "../../store/row-types.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { ChangeEnvelope } from "../codec/dataset-rules.ts";
import { compareOrder, type OrderKey } from "../graph/order.ts";
import type { RulesRegistry } from "../ports.ts";
import { type createEnvelopes, type FoldInput, finalRecordIds, type Part, partsByRecord } from "./change-parts.ts";
import type { OpenBatch } from "./commit-batch.ts";
import { collectionOf } from "./datasets.ts";
import { foldTotally } from "./fold-fault.ts";
import type { HistoryNotes } from "./history-notes.ts";
import type { ModifiedStamp } from "./modified-stamp.ts";
import { ABSENT } from "./record-fold.ts";
import type { Refolder } from "./refolder.ts";
import { foldedState } from "./row-state.ts";
import type { RowWriter } from "./row-writer.ts";

/** A record's part that did not take effect; indexes are into the change's body. */
export interface Rejection {
  recordIndex: number;
  recordId?: string;
  opIndex: number;
  refusal: Refusal;
}

export interface FoldOutcome {
  recordIds: string[];
  rejections: Rejection[];
  /** Whether anything took effect at all. */
  effective: boolean;
  /** Definitions that the change brought, by the names that other changes wait for. */
  defined?: readonly string[];
}

/** From so many records on, a change's rows are looked for in one statement. */
const LOOKED_UP_TOGETHER = 8;

/** What the records of one change have in common. */
interface Folding {
  readonly outcome: FoldOutcome;
  readonly until: number | undefined;
  readonly envelope: ChangeEnvelope;
  /** States of those that have a row, where they were looked up together. */
  readonly states: ReadonlyMap<string, RowState> | undefined;
}

interface ChangeFoldDeps {
  store: Pick<SpaceStore, "datasetNo"> & { rows: RowTable };
  registry: RulesRegistry;
  writer: RowWriter;
  refolder: Refolder;
  modified: ModifiedStamp;
  history: HistoryNotes;
  envelopeOf: ReturnType<typeof createEnvelopes>;
  batch: OpenBatch;
}

/**
 * Folds changes that enter the log into the rows they name: at once where they come last, else by marking the row. Until a
 * row that is marked was folded anew, what comes last is marked too.
 */
export function createChangeFold(deps: ChangeFoldDeps) {
  const { store, registry, writer, refolder, modified, history, envelopeOf, batch } = deps;
  const { rows } = store;

  /** Everything of a change that concerns one record. Answers whether it took effect. */
  const foldInto = (
    input: FoldInput,
    collectionId: number,
    id: string,
    parts: readonly Part[],
    { outcome, until, envelope, states }: Folding,
  ) => {
    const { change, object, body, rules } = input;
    const at: OrderKey = { lamport: change.lamport, change: change.id };
    let head = states?.has(id) === false ? undefined : rows.get(collectionId, id);
    if (!change.counts) {
      rows.touch(head?.no ?? rows.insertAbsent(collectionId, id), change.lamport, change.no);
      return false;
    }
    // Not before what is folded: into its middle, or once more, when its bytes were damaged and came again.
    const isPast = head !== undefined && compareOrder(head, at) >= 0;
    const isLater = until !== undefined && performance.now() >= until;
    const isDirty = head !== undefined && refolder.isDirty(head.no);
    if (isLater || isPast || (isDirty && until !== undefined)) {
      const marked = head ?? { no: rows.insertAbsent(collectionId, id), ops: 0 };
      rows.touch(marked.no, change.lamport, change.no);
      refolder.mark(marked, at, object, body.dataset);
      return false;
    }
    if (head && isDirty) {
      refolder.complete(head.no);
      head = rows.get(collectionId, id);
    }
    const stored = () => (head ? foldedState(rows, head) : ABSENT);
    const records = parts.map(({ record }) => record);
    const result = foldTotally(stored(), stored, id, records, envelope, rules, body.traceIds);
    for (const { part, opIndex, refusal } of result.drops)
      outcome.rejections.push({ recordIndex: parts[part]!.index, recordId: id, opIndex, refusal });
    const effective = result.effects.length > 0;
    const opsBefore = head?.ops ?? 0;
    const ops = opsBefore + result.ops;
    let no: number;
    let doc: string | null = null;
    if (!head) ({ no, shown: doc } = writer.insert(collectionId, id, result.state, at, ops));
    else {
      no = head.no;
      if (effective) doc = writer.update(head, result.state, at, ops);
      else rows.moveOrder(head, change.lamport, change.id);
    }
    rows.touch(no, change.lamport, change.no);
    if (!effective) return false;
    if (writer.isCheckpointDue(result.state, opsBefore, ops)) writer.addCheckpoint(no, result.state, at, ops);
    const before = head?.state === ROW_LIVE ? head.doc : null;
    const { effects } = result;
    const { dataset } = body;
    const record = { collectionId, object: object.idText, dataset, recordId: id, versionId: envelope.version };
    batch.touch({ ...record, before, doc, effects, synced: true });
    return true;
  };

  /**
   * `until`: what the change does to records that it comes to later than at this time (`performance.now`) is left to be folded
   * in slices. Without it everything that takes effect has done so, and is told.
   */
  return (input: FoldInput, until?: number): FoldOutcome => {
    const { change, object, body } = input;
    const outcome: FoldOutcome = { recordIds: finalRecordIds(input), rejections: [], effective: false };
    const defined = registry.learn?.(object.idText, body);
    if (defined && defined.length > 0) outcome.defined = defined;
    history.note(input);
    if (object.deleted) return outcome;
    const collectionId = collectionOf(store, object, body.dataset);
    const refuse = (recordIndex: number, refusal: Refusal): void => {
      outcome.rejections.push({ recordIndex, recordId: outcome.recordIds[recordIndex]!, opIndex: -1, refusal });
    };
    const partsById = partsByRecord(input, outcome.recordIds, refuse);
    // Most records of a large change are new: one statement says which, instead of one for each.
    const states =
      partsById.size >= LOOKED_UP_TOGETHER ? rows.statesOf(collectionId, [...partsById.keys()]) : undefined;
    const folding: Folding = { outcome, until, envelope: envelopeOf(input), states };
    for (const [id, parts] of partsById)
      if (foldInto(input, collectionId, id, parts, folding)) outcome.effective = true;
    outcome.rejections.sort((a, b) => a.recordIndex - b.recordIndex || a.opIndex - b.opIndex);
    const isNewest = change.counts && modified.note(input);
    // Late: what follows it may have been folded before.
    if (!isNewest && outcome.effective) modified.restore(object, body.dataset);
    return outcome;
  };
}
