import type { JsonObject } from "../../protocol/json.ts";
import type { ChangeTable, StoredChange } from "../../store/change-table.ts";
import type { RowTable } from "../../store/row-table.ts";
import { ROW_LIVE, type RowHead } from "../../store/row-types.ts";
import { versionOf } from "../codec/version.ts";
import type { DamagedChanges } from "../graph/damaged-changes.ts";
import type { ObjectEntry } from "../graph/object-cache.ts";
import { compareOrder, type OrderKey } from "../graph/order.ts";
import type { Effect } from "./apply-op.ts";
import { type createEnvelopes, partsByRecord, type ReplayInput } from "./change-parts.ts";
import { type ChangeReader, UnopenedError } from "./change-reader.ts";
import type { OpenBatch } from "./commit-batch.ts";
import { diffDocs } from "./doc-diff.ts";
import { foldTotally } from "./fold-fault.ts";
import { ABSENT, type RecordState } from "./record-fold.ts";
import { toRecordState } from "./row-state.ts";
import type { RowWriter } from "./row-writer.ts";

/** What folding one op anew takes, about: reading its change, opening it, applying it. */
const REFOLD_MS_AN_OP = 0.012;
/** Changes read at a time while a row is folded anew. */
const REFOLD_PAGE = 500;
const BEGINNING: OrderKey = { lamport: 0, change: new Uint8Array(0) };

interface RefolderDeps {
  changes: ChangeTable;
  rows: RowTable;
  writer: RowWriter;
  reader: ChangeReader;
  envelopeOf: ReturnType<typeof createEnvelopes>;
  batch: OpenBatch;
  damaged: Pick<DamagedChanges, "setAside">;
  /** A row was folded without what is stamped on it apart. */
  onRefolded(object: ObjectEntry, dataset: string): void;
}

/** A row to be folded anew, with the first and the last place in its order where something changed. */
interface DirtyRow {
  from: OrderKey;
  to: OrderKey;
  object: ObjectEntry;
  dataset: string;
}

/** A record somewhere in its history: its state, the change that left it so, and the ops that took effect until then. */
interface Progress {
  state: RecordState;
  at: OrderKey;
  ops: number;
}

/** Folds rows anew into whose middle something came, once before the batch ends however often they were marked. */
export type Refolder = ReturnType<typeof createRefolder>;

export function createRefolder(deps: RefolderDeps) {
  const { changes, rows, writer, reader, envelopeOf, batch, damaged } = deps;
  const dirtyRows = new Map<number, DirtyRow>();
  /** Ops that these rows had when they were marked. */
  let dirtyOps = 0;

  const forget = (): void => {
    dirtyRows.clear();
    dirtyOps = 0;
  };

  function* countedChanges(row: number, after: OrderKey): Generator<StoredChange> {
    for (let last = after; ; ) {
      const page = changes.ofRowAfter(row, last.lamport, last.change, REFOLD_PAGE);
      yield* page;
      const end = page.at(-1);
      if (!end || page.length < REFOLD_PAGE) return;
      last = { lamport: end.lamport, change: end.id };
    }
  }

  /** Undefined for a change that the disk changed: it is set aside. */
  const inputOf = (stored: StoredChange, object: ObjectEntry): ReplayInput | undefined => {
    try {
      return reader.replayOf(stored, object);
    } catch (error) {
      if (error instanceof UnopenedError && damaged.setAside(stored)) return undefined;
      throw error;
    }
  };

  /** One change more. */
  const advance = (
    before: Progress,
    stored: StoredChange,
    object: ObjectEntry,
    again: () => RecordState,
    id: string,
  ): Progress => {
    const input = inputOf(stored, object);
    if (!input) return before;
    const parts =
      partsByRecord(input)
        .get(id)
        ?.map(({ record }) => record) ?? [];
    const { rules, body } = input;
    const { state, ops } = foldTotally(before.state, again, id, parts, envelopeOf(input), rules, body.traceIds);
    return { state, ops: before.ops + ops, at: { lamport: stored.lamport, change: stored.id } };
  };

  const checkpointBefore = (row: number, place: OrderKey): Progress => {
    const found = rows.checkpointBefore(row, place.lamport, place.change);
    return found
      ? { state: toRecordState(found.state, found.doc), at: found, ops: found.ops }
      : { state: ABSENT, at: BEGINNING, ops: 0 };
  };

  /** The state that a record had before a change: for the rare one that spoils it while it is folded. */
  const stateBefore = (row: number, id: string, object: ObjectEntry, place: OrderKey): RecordState => {
    let progress = checkpointBefore(row, place);
    for (const stored of countedChanges(row, progress.at)) {
      const at = { lamport: stored.lamport, change: stored.id };
      if (compareOrder(at, place) >= 0) break;
      progress = advance(progress, stored, object, () => stateBefore(row, id, object, at), id);
    }
    return progress.state;
  };

  /**
   * One record from its changes, starting at the newest checkpoint before what changed. Where a checkpoint behind all that
   * changed turns out as it was, so does what follows from it, and is left as it stands.
   */
  const refold = (no: number, { from, to, object, dataset }: DirtyRow): void => {
    const row = rows.byNo(no);
    if (!row) return; // its insert was rolled back after it was marked
    const outdated = rows.placesOfCheckpoints(no, from.lamport, from.change);
    let progress = checkpointBefore(no, from);
    for (const stored of countedChanges(no, progress.at)) {
      const at: OrderKey = { lamport: stored.lamport, change: stored.id };
      const opsBefore = progress.ops;
      progress = advance(progress, stored, object, () => stateBefore(no, row.id, object, at), row.id);
      for (let next = outdated[0]; next && compareOrder(next, at) <= 0; next = outdated[0]) {
        const isBehind = compareOrder(next, to) > 0 && compareOrder(next, at) === 0;
        if (isBehind && writer.isAsCheckpointed(no, next, progress.state)) {
          deps.onRefolded(object, dataset);
          return;
        }
        rows.dropCheckpoint(no, next);
        outdated.shift();
      }
      if (writer.isCheckpointDue(opsBefore, progress.ops)) writer.addCheckpoint(no, progress.state, at, progress.ops);
    }
    for (const place of outdated) rows.dropCheckpoint(no, place);
    const before = row.state === ROW_LIVE ? row.doc : null;
    const shown = writer.update(row, progress.state, progress.at, progress.ops);
    deps.onRefolded(object, dataset);
    if (before === shown) return;
    batch.touch({
      collectionId: row.collectionId,
      object: object.idText,
      dataset,
      recordId: row.id,
      // Nothing that counts is left of a record when a verdict took away the last of its changes: no version then.
      versionId: progress.at.change.length > 0 ? versionOf(progress.at.lamport, progress.at.change) : "",
      before,
      doc: shown,
      effects: effectsBetween(before, shown),
      synced: true,
    });
  };

  return {
    /** A record from all of its changes; its checkpoints are made anew on the way. */
    foldWhole(no: number, id: string, object: ObjectEntry): Progress {
      rows.dropCheckpoints(no);
      let progress: Progress = { state: ABSENT, at: BEGINNING, ops: 0 };
      for (const stored of countedChanges(no, BEGINNING)) {
        const at: OrderKey = { lamport: stored.lamport, change: stored.id };
        const opsBefore = progress.ops;
        progress = advance(progress, stored, object, () => stateBefore(no, id, object, at), id);
        if (writer.isCheckpointDue(opsBefore, progress.ops)) writer.addCheckpoint(no, progress.state, at, progress.ops);
      }
      return progress;
    },
    /** Something changed in a row's history at a place before its end. */
    mark({ no, ops }: Pick<RowHead, "no" | "ops">, at: OrderKey, object: ObjectEntry, dataset: string): void {
      const known = dirtyRows.get(no);
      if (!known) {
        dirtyRows.set(no, { from: at, to: at, object, dataset });
        dirtyOps += ops;
      } else if (compareOrder(at, known.from) < 0) known.from = at;
      else if (compareOrder(at, known.to) > 0) known.to = at;
    },
    run(): void {
      for (const [no, dirty] of dirtyRows) refold(no, dirty);
      forget();
    },
    /** How long `run` will take for the rows marked so far, about. */
    owedMs: (): number => dirtyOps * REFOLD_MS_AN_OP,
    forget,
  };
}

function effectsBetween(before: string | null, after: string | null): Effect[] {
  if (after === null) return [{ type: "$unset", path: [] }];
  return diffDocs(before === null ? {} : (JSON.parse(before) as JsonObject), JSON.parse(after) as JsonObject);
}
