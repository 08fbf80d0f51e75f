import type { SpaceId } from "../../base/ids.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { ChangeTable, StoredChange } from "../../store/change-table.ts";
import type { HistoryTable } from "../../store/history-table.ts";
import {
  type Checkpoint,
  OBJECTS_COLLECTION,
  ROW_ABSENT,
  ROW_LIVE,
  ROW_TOMBSTONE,
  type RowHead,
  type RowState,
  type RowTable,
} from "../../store/row-table.ts";
import type { BodyOpener } from "../codec/body-opener.ts";
import { versionOf } from "../codec/version.ts";
import type { ObjectCache, ObjectEntry } from "../graph/object-cache.ts";
import { compareOrder, type OrderKey } from "../graph/order.ts";
import type { RulesRegistry } from "../ports.ts";
import { createEnvelopes, type FoldInput, finalRecordId, type ReplayInput, recordIdFault } from "./change-parts.ts";
import { createChangeReader } from "./change-reader.ts";
import type { CommitBatch } from "./commit-batch.ts";
import { diffDocs } from "./doc-diff.ts";
import { overlayLocal } from "./local-overlay.ts";
import { ABSENT, type Effect, foldRecord, type RecordState } from "./record-fold.ts";
import { foldedState, toRecordState } from "./row-state.ts";
import { traceKeys } from "./trace-key.ts";

/** A record's part that did not take effect; indexes are into the change's body. */
export interface Rejection {
  recordIndex: number;
  recordId?: string;
  opIndex: number;
  reason: string;
}

export interface FoldOutcome {
  recordIds: string[];
  rejections: Rejection[];
  /** Whether anything took effect at all. */
  effective: boolean;
  /** Definitions that the change brought, by the names that other changes wait for. */
  defined?: readonly string[];
}

/** A row whose history is long is folded from the last checkpoint, not from its beginning; there is one every so many ops. */
const CHECKPOINT_EVERY_OPS = 256;
/** What folding one op anew takes, about: reading its change, opening it, applying it. */
const REFOLD_MS_AN_OP = 0.012;
/** Changes read at a time while a row is folded anew. */
const REFOLD_PAGE = 500;
export const OBJECTS_DATASET = "objects";

interface ProjectionDeps {
  spaceId: SpaceId;
  changes: ChangeTable;
  rows: RowTable;
  /** Absent: the space keeps none. */
  history?: HistoryTable;
  objects: ObjectCache;
  opener: BodyOpener;
  registry: RulesRegistry;
  datasetNo(name: string): number;
  datasetName(no: number): string;
  batch(): CommitBatch;
  checkpointEveryOps?: number;
}

/** A row to be folded anew, with the first and the last place in its order where something changed. */
interface DirtyRow {
  from: OrderKey;
  to: OrderKey;
  object: ObjectEntry;
  dataset: string;
}

/**
 * Rows as a function of the changes that count. A change that comes last in a record's order costs its own ops; one
 * that sorts before something already folded marks the record, which is folded anew once at the end of the batch.
 */
export type Projection = ReturnType<typeof createProjection>;

export function createProjection(deps: ProjectionDeps) {
  const { changes, rows, history, objects, opener, registry } = deps;
  const checkpointEveryOps = deps.checkpointEveryOps ?? CHECKPOINT_EVERY_OPS;
  /** Rows to fold anew before the batch ends. */
  const dirtyRows = new Map<number, DirtyRow>();
  /** Ops that these rows had when they were marked. */
  let dirtyOps = 0;
  const envelopeOf = createEnvelopes(deps.spaceId);
  const reader = createChangeReader({ changes, opener, registry });

  const collectionIdOf = (object: ObjectEntry, dataset: string): number =>
    dataset === OBJECTS_DATASET ? OBJECTS_COLLECTION : rows.collectionId(object.no, deps.datasetNo(dataset));

  const markDirty = ({ no, ops }: RowHead, at: OrderKey, object: ObjectEntry, dataset: string) => {
    const known = dirtyRows.get(no);
    if (!known) {
      dirtyRows.set(no, { from: at, to: at, object, dataset });
      dirtyOps += ops;
    } else if (compareOrder(at, known.from) < 0) known.from = at;
    else if (compareOrder(at, known.to) > 0) known.to = at;
  };

  const isCheckpointDue = (opsBefore: number, ops: number): boolean =>
    Math.floor(ops / checkpointEveryOps) !== Math.floor(opsBefore / checkpointEveryOps);

  /** Tells subscribers of a row; the texts of the live record before and after (null: none) say what kind of news it is. */
  const tell = (
    object: ObjectEntry,
    dataset: string,
    collectionId: number,
    recordId: string,
    versionId: string,
    before: string | null,
    doc: string | null,
    effects: Effect[],
    synced: boolean,
  ) => {
    const wasLive = before !== null;
    if (!wasLive && doc === null) return;
    deps.batch().touched.push({
      collectionId,
      object: object.idText,
      dataset,
      recordId,
      versionId,
      wasLive,
      before,
      doc,
      effects,
      synced,
    });
  };

  const stateOf = (head: RowHead): RecordState => foldedState(rows, head);

  /** Stores a folded state; answers the text that readers see, or null when the record is not live. */
  const store = (no: number, state: RecordState, at: OrderKey, ops: number, hasLocal: boolean): string | null => {
    if (state.kind === "absent") {
      rows.update(no, null, ROW_ABSENT, at.lamport, at.change, ops);
      return null;
    }
    const rowState: RowState = state.kind === "live" ? ROW_LIVE : ROW_TOMBSTONE;
    const base = JSON.stringify(state.doc);
    let shown = base;
    if (hasLocal) {
      const local = rows.local(no);
      if (local && state.kind === "live") {
        shown = overlayLocal(base, JSON.parse(local.fields) as Record<string, Json>);
        rows.putLocal(no, base, local.fields);
      } else rows.dropLocal(no);
    }
    rows.update(no, shown, rowState, at.lamport, at.change, ops);
    return state.kind === "live" ? shown : null;
  };

  /** The same for a record without a row: one statement. */
  const insert = (collectionId: number, id: string, state: RecordState, at: OrderKey, ops: number) => {
    if (state.kind === "absent")
      return { no: rows.insert(collectionId, id, null, ROW_ABSENT, at.lamport, at.change, ops), shown: null };
    const doc = JSON.stringify(state.doc);
    const live = state.kind === "live";
    const no = rows.insert(collectionId, id, doc, live ? ROW_LIVE : ROW_TOMBSTONE, at.lamport, at.change, ops);
    return { no, shown: live ? doc : null };
  };

  /** The state must be that after the whole of the change at `at`: folding goes on with what comes behind it. */
  const addCheckpoint = (no: number, state: RecordState, at: OrderKey, ops: number) => {
    if (state.kind === "absent") return;
    rows.addCheckpoint(no, {
      ...at,
      ops,
      state: state.kind === "live" ? ROW_LIVE : ROW_TOMBSTONE,
      doc: JSON.stringify(state.doc),
    });
  };

  /** The change's place in its object's graph, and its traces: what the history is listed by. */
  const noteHistory = ({ change, parents, object, body, rules }: FoldInput): void => {
    if (!history) return;
    const hidden = rules.skipHistory === true;
    history.add(object.no, {
      change: change.no,
      lamport: change.lamport,
      writer: change.writer,
      ds: deps.datasetNo(body.dataset),
      hidden,
      timeMs: change.timeMs,
      parents,
    });
    if (hidden) return;
    for (const trace of traceKeys(body.traceIds)) history.addTrace(object.no, trace, change.lamport, change.no);
  };

  /** Folds one change into the rows it names. The caller has put it into the log. */
  const foldChange = (input: FoldInput): FoldOutcome => {
    const { change, object, body, rules } = input;
    const outcome: FoldOutcome = { recordIds: [], rejections: [], effective: false };
    const defined = registry.learn?.(object.idText, body);
    if (defined && defined.length > 0) outcome.defined = defined;
    noteHistory(input);
    if (object.deleted) return outcome;
    const envelope = envelopeOf(input);
    const at: OrderKey = { lamport: change.lamport, change: change.id };
    const collectionId = collectionIdOf(object, body.dataset);
    const empties = { count: 0 };
    const ids = body.records.map((record) => finalRecordId(record, input, empties));
    const isLast = lastPlaces(ids);
    /** Rows that a later part of the change names again: each is read once and stored once, however often it is named. */
    const open = new Map<string, OpenRow>();

    const foldPart = (index: number, id: string): void => {
      const record = body.records[index]!;
      const known = open.get(id);
      const head = known ? known.head : rows.get(collectionId, id);
      const fault = recordIdFault(record, input);
      if (fault) {
        outcome.rejections.push({ recordIndex: index, recordId: id, opIndex: -1, reason: fault });
        return;
      }
      if (head && compareOrder(head, at) > 0) {
        rows.touch(head.no, change.lamport, change.no);
        if (change.counts) markDirty(head, at, object, body.dataset);
        return;
      }
      if (!change.counts) {
        rows.touch(head?.no ?? rows.insertAbsent(collectionId, id), change.lamport, change.no);
        return;
      }
      const row: OpenRow = known ?? { head, state: head ? stateOf(head) : ABSENT, ops: head?.ops ?? 0, effects: [] };
      const result = foldRecord(row.state, id, record, envelope, rules, body.traceIds);
      for (const drop of result.drops) outcome.rejections.push({ recordIndex: index, recordId: id, ...drop });
      row.state = result.state;
      if (result.effects.length > 0) row.ops += Math.max(1, record.ops.length);
      if (row.effects.length === 0) row.effects = result.effects;
      else for (const effect of result.effects) row.effects.push(effect);
      open.set(id, row);
    };

    const close = (id: string, { head, state, ops, effects }: OpenRow): void => {
      const effective = effects.length > 0;
      let no: number;
      let shown: string | null;
      if (head) {
        no = head.no;
        if (!effective) rows.moveOrder(no, change.lamport, change.id);
        shown = effective ? store(no, state, at, ops, head.hasLocal) : null;
      } else ({ no, shown } = insert(collectionId, id, state, at, ops));
      rows.touch(no, change.lamport, change.no);
      if (!effective) return;
      outcome.effective = true;
      if (isCheckpointDue(head?.ops ?? 0, ops)) addCheckpoint(no, state, at, ops);
      const before = head?.state === ROW_LIVE ? head.doc : null;
      tell(object, body.dataset, collectionId, id, envelope.version, before, shown, effects, true);
    };

    for (const [index, id] of ids.entries()) {
      outcome.recordIds.push(id);
      foldPart(index, id);
      const row = open.get(id);
      if (!row || !isLast(index)) continue;
      open.delete(id);
      close(id, row);
    }
    if (change.counts && compareOrder({ lamport: object.modified.lamport, change: object.modified.change }, at) < 0) {
      objects.setModified(object, { lamport: change.lamport, change: change.id, ms: change.timeMs });
    } else if (outcome.effective) settled(object, body.dataset); // late: what follows it may have been folded before
    return outcome;
  };

  const forgetDirty = (): void => {
    dirtyRows.clear();
    dirtyOps = 0;
  };

  /**
   * One record from its changes, starting at the newest checkpoint before what changed. Where a checkpoint behind all that
   * changed turns out as it was, so does what follows from it, and is left as it stands.
   */
  const refold = (no: number, { from, to, object, dataset }: DirtyRow) => {
    const row = rows.byNo(no);
    if (!row) return; // its insert was rolled back after it was marked
    const outdated = rows.placesOfCheckpoints(no, from.lamport, from.change);
    const checkpoint = rows.checkpointBefore(no, from.lamport, from.change);
    let state = checkpoint ? toRecordState(checkpoint.state, checkpoint.doc) : ABSENT;
    let ops = checkpoint?.ops ?? 0;
    let last: OrderKey = checkpoint ?? { lamport: 0, change: new Uint8Array(0) };
    for (const stored of countedChanges(no, last)) {
      const at: OrderKey = { lamport: stored.lamport, change: stored.id };
      const input = reader.replayOf(stored, object);
      const envelope = envelopeOf(input);
      const empties = { count: 0 };
      const opsBefore = ops;
      for (const record of input.body.records) {
        const id = finalRecordId(record, input, empties);
        if (id !== row.id || recordIdFault(record, input)) continue;
        const result = foldRecord(state, id, record, envelope, input.rules, input.body.traceIds);
        state = result.state;
        if (result.effects.length > 0) ops += Math.max(1, record.ops.length);
      }
      last = at;
      for (let next = outdated[0]; next && compareOrder(next, at) <= 0; next = outdated[0]) {
        const isBehind = compareOrder(next, to) > 0 && compareOrder(next, at) === 0;
        if (isBehind && isSameState(rows.checkpointAt(no, next), state)) return settled(object, dataset);
        rows.dropCheckpoint(no, next);
        outdated.shift();
      }
      if (isCheckpointDue(opsBefore, ops)) addCheckpoint(no, state, at, ops);
    }
    for (const place of outdated) rows.dropCheckpoint(no, place);
    const before = row.state === ROW_LIVE ? row.doc : null;
    const shown = store(no, state, last, ops, row.hasLocal);
    settled(object, dataset);
    if (before === shown) return;
    const effects: Effect[] =
      shown === null
        ? [{ type: "$unset", path: [] }]
        : diffDocs(before === null ? {} : (JSON.parse(before) as JsonObject), JSON.parse(shown) as JsonObject);
    // Nothing that counts is left of a record when a verdict took away the last of its changes: no version then.
    const version = last.change.length > 0 ? versionOf(last.lamport, last.change) : "";
    tell(object, dataset, row.collectionId, row.id, version, before, shown, effects, true);
  };

  /** The row of an object among all objects was folded without the stamp of its last modification. */
  const settled = (object: ObjectEntry, dataset: string): void => {
    if (dataset === OBJECTS_DATASET) objects.setModified(object, object.modified);
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

  return {
    foldChange,
    /** A change that is in the graph, but cannot be read yet: its place in the history is kept. */
    noteUnopened(change: ReplayInput["change"], parents: readonly number[], object: ObjectEntry): void {
      history?.add(object.no, {
        change: change.no,
        lamport: change.lamport,
        writer: change.writer,
        ds: 0,
        hidden: true,
        timeMs: change.timeMs,
        parents,
      });
    },
    replayOf: reader.replayOf,
    envelopeOf,

    /** A verdict changed: the rows that the change touches are folded anew without or with it. */
    refoldTouchedBy(stored: StoredChange, object: ObjectEntry): void {
      const input = reader.inputOf(stored, object);
      const collectionId = collectionIdOf(object, input.body.dataset);
      const empties = { count: 0 };
      for (const record of input.body.records) {
        const head = rows.get(collectionId, finalRecordId(record, input, empties));
        if (head) markDirty(head, { lamport: stored.lamport, change: stored.id }, object, input.body.dataset);
      }
      const newest = changes.newestOfObject(object.no);
      objects.setModified(
        object,
        newest
          ? { lamport: newest.lamport, change: newest.id, ms: newest.timeMs }
          : { lamport: 0, change: new Uint8Array(0), ms: 0 },
      );
    },

    /** Folds everything of an object from its changes. Device-local fields stay. Nothing is told. */
    rebuildObject(object: ObjectEntry): void {
      for (const key of rows.rowsOfObject(object.no, object.idText)) {
        rows.dropCheckpoints(key.no);
        rows.reset(key.no);
        if (key.state === ROW_LIVE) rows.addLive(key.collectionId, -1);
      }
      objects.setModified(object, { lamport: 0, change: new Uint8Array(0), ms: 0 });
      for (const stored of changes.ofObject(object.no)) {
        if (stored.ds !== 0) foldChange(reader.inputOf(stored, object));
      }
    },

    /**
     * Puts a tombstone in the place of an object's row in the collection of all objects. It follows from the root and the
     * entry in the deletion log alone, so that whoever never had the row shows the same.
     */
    hideObjectRow(object: ObjectEntry, deletion: { version: string; timeMs: number }): void {
      const head = rows.get(OBJECTS_COLLECTION, object.idText);
      const root = changes.byId(object.id)!;
      const doc = JSON.stringify({
        id: object.idText,
        _deletedAt: { $date: new Date(deletion.timeMs).toISOString() },
        _ver: { id: versionOf(root.lamport, root.id), "*": deletion.version },
      });
      if (!head) {
        rows.insert(OBJECTS_COLLECTION, object.idText, doc, ROW_TOMBSTONE, root.lamport, root.id, 0);
        return;
      }
      if (head.doc === doc) return;
      if (head.hasLocal) rows.dropLocal(head.no);
      rows.dropCheckpoints(head.no);
      rows.update(head.no, doc, ROW_TOMBSTONE, head.lamport, head.change, head.ops);
      if (head.state !== ROW_LIVE) return;
      const effects: Effect[] = [{ type: "$unset", path: [] }];
      tell(object, OBJECTS_DATASET, OBJECTS_COLLECTION, object.idText, "", head.doc, null, effects, true);
    },

    /** Sets device-local fields of a live record; a null removes one. Answers false when there is no such record. */
    setLocal(
      object: ObjectEntry,
      dataset: string,
      recordId: string,
      fields: Readonly<Record<string, Json | undefined>>,
      versionId: string,
    ): boolean {
      const collectionId = collectionIdOf(object, dataset);
      const head = rows.get(collectionId, recordId);
      if (!head || head.state !== ROW_LIVE || head.doc === null) return false;
      const known = head.hasLocal ? rows.local(head.no) : undefined;
      const base = known?.base ?? head.doc;
      const merged: Record<string, Json> = known ? (JSON.parse(known.fields) as Record<string, Json>) : {};
      const effects: Effect[] = [];
      for (const [path, value] of Object.entries(fields)) {
        if (value === undefined) {
          delete merged[path];
          effects.push({ type: "$unset", path: path.split(".") });
        } else {
          merged[path] = value;
          effects.push({ type: "$set", path: path.split("."), payload: value });
        }
      }
      const shown = overlayLocal(base, merged);
      if (Object.keys(merged).length > 0) rows.putLocal(head.no, base, JSON.stringify(merged));
      else rows.dropLocal(head.no);
      rows.setDoc(head.no, shown);
      tell(object, dataset, collectionId, recordId, versionId, head.doc, shown, effects, false);
      return true;
    },

    /** Before COMMIT, after all else: counts what collections gained and lost in this batch, a statement a collection. */
    countLive(): void {
      const gained = new Map<number, number>();
      for (const { collectionId, wasLive, doc } of deps.batch().touched)
        if (wasLive !== (doc !== null)) gained.set(collectionId, (gained.get(collectionId) ?? 0) + (wasLive ? -1 : 1));
      for (const [collectionId, by] of gained) if (by !== 0) rows.addLive(collectionId, by);
    },

    /** Before COMMIT: folds marked rows anew, then writes the stamps of objects that were modified. */
    finishBatch(): void {
      for (const [no, dirty] of dirtyRows) refold(no, dirty);
      forgetDirty();
      for (const object of objects.flush()) stampModified(object);
    },

    /** How long `finishBatch` will take for the rows marked so far, about. */
    owedMs: (): number => dirtyOps * REFOLD_MS_AN_OP,

    forgetBatch(): void {
      forgetDirty();
      reader.forgetWriters();
    },
  };

  /** `modifiedAt` of an object's row follows the newest change that counts, in whatever dataset. */
  function stampModified(object: ObjectEntry): void {
    const head = rows.get(OBJECTS_COLLECTION, object.idText);
    if (!head || head.state !== ROW_LIVE || head.doc === null || object.modified.lamport === 0) return;
    const stamp = { $date: new Date(object.modified.ms).toISOString() };
    const stamped = (text: string): string => {
      const doc = JSON.parse(text) as JsonObject;
      doc["modifiedAt"] = stamp;
      return JSON.stringify(doc);
    };
    const shown = stamped(head.doc);
    if (shown === head.doc) return;
    const local = head.hasLocal ? rows.local(head.no) : undefined;
    if (local) rows.putLocal(head.no, stamped(local.base), local.fields);
    rows.setDoc(head.no, shown);
    const version = versionOf(object.modified.lamport, object.modified.change);
    tell(
      object,
      OBJECTS_DATASET,
      OBJECTS_COLLECTION,
      object.idText,
      version,
      head.doc,
      shown,
      [{ type: "$set", path: ["modifiedAt"], payload: stamp }],
      false,
    );
  }
}

function isSameState(
  checkpoint: (Pick<Checkpoint, "doc"> & { state: number }) | undefined,
  folded: RecordState,
): boolean {
  if (!checkpoint || folded.kind === "absent") return false;
  const state = folded.kind === "live" ? ROW_LIVE : ROW_TOMBSTONE;
  return checkpoint.state === state && checkpoint.doc === JSON.stringify(folded.doc);
}

/** A record in the middle of a change: as it was, and as the parts so far leave it. */
interface OpenRow {
  head: RowHead | undefined;
  state: RecordState;
  ops: number;
  effects: Effect[];
}

/** Whether the id at a place stands at no later one. */
function lastPlaces(ids: readonly string[]): (index: number) => boolean {
  const lastById = new Map<string, number>();
  for (const [index, id] of ids.entries()) lastById.set(id, index);
  return lastById.size === ids.length ? () => true : (index) => lastById.get(ids[index]!) === index;
}
