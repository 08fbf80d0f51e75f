import type { JsonObject } from "../../protocol/json.ts";
import type { DirtyRow } from "../../store/rows/dirty-row-table.ts";
import type { RowTable } from "../../store/rows/row-table.ts";
import { ROW_LIVE, type RowHead } from "../../store/rows/row-types.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { ChangeTable } from "../../store/tables/change-table.ts";
import { versionOf } from "../codec/version.ts";
import type { ObjectCache, ObjectEntry } from "../graph/object-cache.ts";
import { compareOrder, type OrderKey } from "../graph/order.ts";
import type { Effect } from "./apply-op.ts";
import type { OpenBatch } from "./commit-batch.ts";
import { diffDocs } from "./doc-diff.ts";
import { foldTotally } from "./fold-fault.ts";
import type { OpenedChanges } from "./opened-changes.ts";
import { ABSENT, type RecordState } from "./record-fold.ts";
import { toRecordState } from "./row-state.ts";
import type { RowWriter } from "./row-writer.ts";

/** What folding one op anew takes, about: reading its change, opening it, applying it. */
const REFOLD_MS_AN_OP = 0.012;
/** More is not done in the commit that comes. */
const MAX_OWED_MS = 8;
/**
 * What of opened changes one row goes through before the row that is the farthest behind has its turn: rows that the same
 * changes touch stay close together, so that each change is opened about once for all of them.
 */
const STRIDE_BYTES = 4 << 20;
/** Changes looked up at a time while a row is folded anew: few at first, since a row's turn may be short. */
const FIRST_PAGE = 16;
const REFOLD_PAGE = 512;
const BEGINNING: OrderKey = { lamport: 0, change: new Uint8Array(0) };
const ID_BYTES = 32;

interface RefolderDeps {
  store: Pick<SpaceStore, "dirtyRows" | "datasetNo" | "datasetName"> & { changes: ChangeTable; rows: RowTable };
  objects: Pick<ObjectCache, "byNo">;
  writer: RowWriter;
  opened: OpenedChanges;
  /** A turn folds rows anew for so long, but for the change it is at. */
  sliceMs: number;
  batch: OpenBatch;
  /** What is noted of a row that is to be folded anew was damaged on the disk: all that it may be about is folded anew. */
  onDamaged(dirty: DirtyRow): void;
  /** A row was folded without what is stamped on it apart. */
  onRefolded(object: ObjectEntry, dataset: string): void;
}

/** A record somewhere in its history: its state, the change that left it so, and the ops that took effect until then. */
interface Progress {
  state: RecordState;
  at: OrderKey;
  ops: number;
}

/**
 * Folds rows anew into whose middle something came, a slice at a time (CHANGE-9): the row whose position is the earliest goes a stride
 * further, and how far it got is kept as a checkpoint. Until its end a row shows what it showed before.
 */
export type Refolder = ReturnType<typeof createRefolder>;

export function createRefolder({ store, objects, writer, opened, sliceMs, batch, ...deps }: RefolderDeps) {
  const { changes, rows, dirtyRows } = store;
  const { onRefolded } = deps;
  /** False only when there is surely none. */
  let mayBeDirty = dirtyRows.any();
  /** Ops of the rows that were marked since the last slice. */
  let markedOps = 0;

  function* countedChanges(row: number, after: OrderKey): Generator<{ no: number; at: OrderKey }> {
    let limit = FIRST_PAGE;
    for (let last = after; ; limit = Math.min(REFOLD_PAGE, 2 * limit)) {
      const page = changes.ofRowAfter(row, last.lamport, last.change, limit);
      for (const { no, lamport, id } of page) yield { no, at: { lamport, change: id } };
      const end = page.at(-1);
      if (!end || page.length < limit) return;
      last = { lamport: end.lamport, change: end.id };
    }
  }

  /** One change more. Answers how much of it was opened: nothing of one that the disk changed, which is set aside. */
  const advance = (
    progress: Progress,
    no: number,
    at: OrderKey,
    row: { no: number; id: string },
    object: ObjectEntry,
  ) => {
    const change = opened.get(no, object);
    if (!change) return 0;
    const { input, envelope, bytes, partsOf } = change;
    const again = () => stateBefore(row, object, at);
    const parts = partsOf(row.id);
    const folded = foldTotally(progress.state, again, row.id, parts, envelope, input.rules, input.body.traceIds);
    progress.state = folded.state;
    progress.ops += folded.ops;
    progress.at = at;
    return bytes;
  };

  const checkpointBefore = (row: number, position: OrderKey): Progress => {
    const found = rows.checkpointBefore(row, position.lamport, position.change);
    return found
      ? { state: toRecordState(found.state, found.doc), at: found, ops: found.ops }
      : { state: ABSENT, at: BEGINNING, ops: 0 };
  };

  /** The state that a record had before a change: for the rare one that spoils it while it is folded. */
  const stateBefore = (row: { no: number; id: string }, object: ObjectEntry, position: OrderKey): RecordState => {
    const progress = checkpointBefore(row.no, position);
    for (const { no, at } of countedChanges(row.no, progress.at)) {
      if (compareOrder(at, position) >= 0) break;
      advance(progress, no, at, row, object);
    }
    return progress.state;
  };

  /** How far a row got is kept, and what was kept of that before is not. */
  const pause = (dirty: DirtyRow, { state, at, ops }: Progress): void => {
    const { row, from } = dirty;
    if (isBehindOne(from)) rows.dropCheckpoint(row, oneBefore(from));
    writer.addCheckpoint(row, state, at, ops);
    dirtyRows.moveOn(dirty, behind(at));
  };

  /**
   * One record from its changes, starting at the newest checkpoint before what changed, for as long as `goesOn` says so of
   * what was opened for it. Where a checkpoint behind all that changed turns out as it was, so does what follows from it,
   * and is left as it stands.
   */
  const refold = (dirty: DirtyRow, goesOn: (openedBytes: number) => boolean): void => {
    if (!dirty.isSound) {
      deps.onDamaged(dirty);
      return;
    }
    const { row: no, from, to } = dirty;
    const row = rows.byNo(no);
    const object = objects.byNo(dirty.objectNo);
    if (!row || !object || object.deleted) {
      dirtyRows.drop(no);
      return;
    }
    const dataset = store.datasetName(dirty.datasetNo);
    const outdated = rows.positionsOfCheckpoints(no, from.lamport, from.change);
    const progress = checkpointBefore(no, from);
    let openedBytes = 0;
    for (const { no: change, at } of countedChanges(no, progress.at)) {
      if (openedBytes > 0 && !goesOn(openedBytes)) {
        pause(dirty, progress);
        return;
      }
      const opsBefore = progress.ops;
      openedBytes += advance(progress, change, at, row, object);
      for (let next = outdated[0]; next && compareOrder(next, at) <= 0; next = outdated[0]) {
        const isBehind = compareOrder(next, to) > 0 && compareOrder(next, at) === 0;
        if (isBehind && writer.isAsCheckpointed(no, next, progress.state)) {
          finish(dirty);
          onRefolded(object, dataset);
          return;
        }
        rows.dropCheckpoint(no, next);
        outdated.shift();
      }
      if (writer.isCheckpointDue(progress.state, opsBefore, progress.ops))
        writer.addCheckpoint(no, progress.state, at, progress.ops);
    }
    for (const position of outdated) rows.dropCheckpoint(no, position);
    finish(dirty);
    const before = row.state === ROW_LIVE ? row.doc : null;
    const shown = writer.update(row, progress.state, progress.at, progress.ops);
    onRefolded(object, dataset);
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

  const finish = ({ row, from }: DirtyRow): void => {
    if (isBehindOne(from)) rows.dropCheckpoint(row, oneBefore(from));
    dirtyRows.drop(row);
  };

  return {
    /** A record from all of its changes; its checkpoints are made anew on the way. */
    foldWhole(no: number, id: string, object: ObjectEntry): Progress {
      rows.dropCheckpoints(no);
      const progress: Progress = { state: ABSENT, at: BEGINNING, ops: 0 };
      for (const { no: change, at } of countedChanges(no, BEGINNING)) {
        const opsBefore = progress.ops;
        advance(progress, change, at, { no, id }, object);
        if (writer.isCheckpointDue(progress.state, opsBefore, progress.ops))
          writer.addCheckpoint(no, progress.state, at, progress.ops);
      }
      return progress;
    },
    /** Something changed in rows' histories that the rows were not folded with. */
    mark(heads: readonly Pick<RowHead, "no" | "ops">[], at: OrderKey, object: ObjectEntry, dataset: string): void {
      if (heads.length === 0) return;
      const numbers = heads.map(({ no }) => no);
      dirtyRows.mark(numbers, object.no, store.datasetNo(dataset), at);
      mayBeDirty = true;
      for (const { ops } of heads) markedOps += 1 + ops;
    },
    isDirty: (row: number): boolean => mayBeDirty && dirtyRows.of(row) !== undefined,
    /** Whether rows are left to be folded anew. */
    isOwing: (): boolean => mayBeDirty,
    /** All of one row, since something is to follow it at once. */
    complete(row: number): void {
      const dirty = dirtyRows.of(row);
      if (dirty) refold(dirty, () => true);
    },
    runSlice(): void {
      markedOps = 0;
      const until = performance.now() + sliceMs;
      const goesOn = (openedBytes: number) => openedBytes < STRIDE_BYTES && performance.now() < until;
      do {
        const dirty = dirtyRows.first();
        if (dirty) refold(dirty, goesOn);
        else {
          mayBeDirty = false;
          opened.forget();
        }
      } while (mayBeDirty && performance.now() < until);
    },
    /** How long a slice will take for the rows marked since the last one, about; 0 when none were. */
    owedMs: (): number => Math.min(MAX_OWED_MS, markedOps * REFOLD_MS_AN_OP),
    /** After a failed batch: what was folded in it is to be folded again. */
    forget(): void {
      markedOps = 0;
      mayBeDirty = true;
      opened.forget();
    },
  };
}

/** The position right behind a change, before any other. */
const behind = ({ lamport, change }: OrderKey): OrderKey => {
  const longer = new Uint8Array(change.length + 1);
  longer.set(change);
  return { lamport, change: longer };
};
const isBehindOne = ({ change }: OrderKey): boolean => change.length > ID_BYTES;
const oneBefore = ({ lamport, change }: OrderKey): OrderKey => ({ lamport, change: change.subarray(0, -1) });

function effectsBetween(before: string | null, after: string | null): Effect[] {
  if (after === null) return [{ type: "$unset", path: [] }];
  return diffDocs(before === null ? {} : (JSON.parse(before) as JsonObject), JSON.parse(after) as JsonObject);
}
