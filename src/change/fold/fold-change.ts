import type { Refusal } from "../../protocol/refusals.ts";
import type { NewRow } from "../../store/rows/row-insert.ts";
import type { RowTable } from "../../store/rows/row-table.ts";
import { ROW_LIVE, type RowHead, type RowState } from "../../store/rows/row-types.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { ChangeEnvelope } from "../codec/dataset-rules.ts";
import type { RulesRegistry } from "../codec/ports.ts";
import { compareOrder, type OrderKey } from "../graph/order.ts";
import { type createEnvelopes, type FoldInput, finalRecordIds, type Part, partsByRecord } from "./change-parts.ts";
import type { OpenBatch } from "./commit-batch.ts";
import { collectionOf } from "./datasets.ts";
import { foldTotally } from "./fold-fault.ts";
import type { HistoryNotes } from "./history-notes.ts";
import type { ModifiedStamp } from "./modified-stamp.ts";
import { ABSENT, type FoldResult } from "./record-fold.ts";
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
/** Rows that a change makes are stored after so many at the latest, so that what that takes counts into its slice. */
const STORED_TOGETHER = 50;

/** A record that the change makes, until its row is there. */
interface Made {
  readonly id: string;
  readonly result: FoldResult;
  readonly row: NewRow;
}

/** A record whose row is written. */
interface Written {
  readonly id: string;
  readonly no: number;
  readonly result: FoldResult;
  /** The texts that readers saw and see, null where the record is not live. */
  readonly before: string | null;
  readonly doc: string | null;
  readonly opsBefore: number;
}

/** What the records of one change have in common. */
interface Folding {
  readonly collectionId: number;
  readonly outcome: FoldOutcome;
  readonly until: number | undefined;
  readonly envelope: ChangeEnvelope;
  /** States of those that have a row, where they were looked up together. */
  readonly states: ReadonlyMap<string, RowState> | undefined;
  /** Those made since a row was last written. They are stored together before the next record that has one. */
  readonly made: Made[];
  /** Rows that the change touches: noted together once all of them are there. */
  readonly touched: number[];
  /** Those among them that are to be folded anew: noted together, too. */
  readonly marked: Pick<RowHead, "no" | "ops">[];
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

  /** What is done for a record once its row is as the change leaves it. Answers whether the change took effect on it. */
  const noteFolded = (
    { change, object, body }: FoldInput,
    { collectionId, envelope, touched }: Folding,
    { id, no, result, before, doc, opsBefore }: Written,
  ): boolean => {
    touched.push(no);
    const { effects, state } = result;
    if (effects.length === 0) return false;
    const at: OrderKey = { lamport: change.lamport, change: change.id };
    const ops = opsBefore + result.ops;
    if (writer.isCheckpointDue(state, opsBefore, ops)) writer.addCheckpoint(no, state, at, ops);
    batch.touch({
      collectionId,
      object: object.idText,
      dataset: body.dataset,
      recordId: id,
      versionId: envelope.version,
      before,
      doc,
      effects,
      synced: true,
    });
    return true;
  };

  /** Stores the rows of records that are new. */
  const storeMade = (input: FoldInput, folding: Folding): void => {
    const { made, outcome } = folding;
    const numbers = rows.insertAll(
      folding.collectionId,
      made.map(({ row }) => row),
    );
    for (const [index, { id, result, row }] of made.entries()) {
      const doc = row.state === ROW_LIVE ? row.doc : null;
      const written: Written = { id, no: numbers[index]!, result, before: null, doc, opsBefore: 0 };
      if (noteFolded(input, folding, written)) outcome.effective = true;
    }
    made.length = 0;
  };

  /** Everything of a change that concerns one record. */
  const foldInto = (input: FoldInput, id: string, parts: readonly Part[], folding: Folding): void => {
    const { collectionId, outcome, until, envelope, states } = folding;
    const { change, body, rules } = input;
    const at: OrderKey = { lamport: change.lamport, change: change.id };
    let head = states?.has(id) === false ? undefined : rows.get(collectionId, id);
    if (!change.counts) {
      folding.touched.push(head?.no ?? rows.insertAbsent(collectionId, id));
      return;
    }
    // Not before what is folded: into its middle, or once more, when its bytes were damaged and came again.
    const isPast = head !== undefined && compareOrder(head, at) >= 0;
    const isLater = until !== undefined && performance.now() >= until;
    const isDirty = !isPast && !isLater && head !== undefined && refolder.isDirty(head.no);
    if (isLater || isPast || (isDirty && until !== undefined)) {
      const marked = head ?? { no: rows.insertAbsent(collectionId, id), ops: 0 };
      folding.touched.push(marked.no);
      folding.marked.push(marked);
      return;
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
    if (!head) {
      folding.made.push({ id, result, row: writer.newRow(id, result.state, at, result.ops) });
      if (folding.made.length === STORED_TOGETHER) storeMade(input, folding);
      return;
    }
    storeMade(input, folding);
    const before = head.state === ROW_LIVE ? head.doc : null;
    let doc: string | null = null;
    if (result.effects.length > 0) doc = writer.update(head, result.state, at, head.ops + result.ops);
    else rows.moveOrder(head, change.lamport, change.id);
    if (noteFolded(input, folding, { id, no: head.no, result, before, doc, opsBefore: head.ops }))
      outcome.effective = true;
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
    const envelope = envelopeOf(input);
    const folding: Folding = { collectionId, outcome, until, envelope, states, made: [], touched: [], marked: [] };
    for (const [id, parts] of partsById) foldInto(input, id, parts, folding);
    storeMade(input, folding);
    rows.touchAll(folding.touched, change.lamport, change.no);
    refolder.mark(folding.marked, { lamport: change.lamport, change: change.id }, object, body.dataset);
    outcome.rejections.sort((a, b) => a.recordIndex - b.recordIndex || a.opIndex - b.opIndex);
    const isNewest = change.counts && modified.note(input);
    // Late: what follows it may have been folded before.
    if (!isNewest && outcome.effective) modified.restore(object, body.dataset);
    return outcome;
  };
}
