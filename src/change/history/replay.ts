import type { SpaceStore } from "../../store/space-store.ts";
import type { StoredChange } from "../../store/tables/change-table.ts";
import type { HistoryTable } from "../../store/tables/history-table.ts";
import type { RecordChange } from "../codec/change-body.ts";
import type { ChangeEnvelope } from "../codec/dataset-rules.ts";
import { finalRecordId, type ReplayInput, recordIdFault } from "../fold/change-parts.ts";
import { foldTotally } from "../fold/fold-fault.ts";
import { ABSENT, type RecordState } from "../fold/record-fold.ts";
import { foldedState, toRecordState } from "../fold/row-state.ts";
import type { ChangeEngine } from "../space-engine.ts";
import type { HistoryGraph } from "./graph.ts";
import type { Past, Reading } from "./past.ts";
import type { FoldedStates } from "./states.ts";

/** Opened text of the changes that one read keeps open. */
const OPEN_BYTES = 16 << 20;
const TOUCHES_A_READ = 500;
const NOTHING = new Uint8Array(0);

/** A change opened for replay: what it does, by record. */
export interface OpenChange {
  input: ReplayInput;
  envelope: ChangeEnvelope;
  /** In the order of the body; a record may have several entries. */
  partsById: ReadonlyMap<string, readonly RecordChange[]>;
}

export type Openers = ReturnType<typeof createOpeners>;

/** Opens stored changes and keeps the most recently used ones, because one change often touches many records. */
export function createOpeners(engine: Pick<ChangeEngine, "replay">) {
  const kept = new Map<number, { open: OpenChange; bytes: number }>();
  let bytes = 0;

  return (stored: StoredChange, reading: Pick<Reading, "object">): OpenChange => {
    const known = kept.get(stored.no);
    if (known) {
      kept.delete(stored.no);
      kept.set(stored.no, known);
      return known.open;
    }
    const { input, envelope } = engine.replay(stored, reading.object);
    const partsById = new Map<string, RecordChange[]>();
    const empties = { count: 0 };
    for (const record of input.body.records) {
      const id = finalRecordId(record, input, empties);
      const parts = partsById.get(id);
      if (parts) parts.push(record);
      else partsById.set(id, [record]);
    }
    const open = { input, envelope, partsById };
    kept.set(stored.no, { open, bytes: input.openedBytes });
    bytes += input.openedBytes;
    for (const [no, oldest] of kept) {
      if (bytes <= OPEN_BYTES || no === stored.no) break;
      kept.delete(no);
      bytes -= oldest.bytes;
    }
    return open;
  };
}

/** What replaying needs besides the past it replays. */
export interface ReplayDeps {
  store: SpaceStore;
  states: FoldedStates;
}

/**
 * Returns a record as it was at a version: the fold of the changes within the version's past that touched it, by the rules of the
 * fold. A row that no other change touched is taken as it is stored; others are folded from the last checkpoint within the past,
 * or from a state that an earlier read computed.
 */
export async function recordAt(
  { store, states }: ReplayDeps,
  openers: Openers,
  reading: Reading,
  past: Past,
  row: { no: number; id: string },
): Promise<RecordState> {
  await reading.breathe();
  const outside = await firstOutside(store, reading, past, row.no);
  const dirty = store.dirtyRows.of(row.no);
  const unfolded = dirty && (dirty.isSound ? dirty.from : { lamport: 0 });
  if (outside === undefined && !unfolded) return currentState(store, row.no);
  // Nothing before what is outside, and nothing beside it either.
  if (outside !== undefined && outside > past.topLamport && !store.history.isTouchedBefore(row.no, outside))
    return ABSENT;

  // Of a row that is to be folded anew, what was kept behind the position from which on it is, is worth nothing.
  const kept = Math.min(outside ?? Number.MAX_SAFE_INTEGER, unfolded?.lamport ?? Number.MAX_SAFE_INTEGER);
  const checkpoint = store.rows.checkpointBefore(row.no, kept, NOTHING);
  const folded: number[] = [];
  let last = checkpoint ? { lamport: checkpoint.lamport, id: checkpoint.change } : { lamport: 0, id: NOTHING };
  for (;;) {
    const page = store.history.countedTouches(row.no, last, past.topLamport, TOUCHES_A_READ);
    for (const touch of page) if (past.has(touch.no)) folded.push(touch.no);
    if (page.length < TOUCHES_A_READ) break;
    last = page[page.length - 1]!;
    await reading.breathe();
  }

  const chain = states.chain(row.no, checkpoint?.doc ?? "", folded);
  const begin = (): { count: number; state: RecordState } =>
    chain.longestKnown() ?? { count: 0, state: checkpoint ? toRecordState(checkpoint.state, checkpoint.doc) : ABSENT };
  let at = begin();
  for (let hasStumbled = false; at.count < folded.length; await reading.breathe()) {
    const copy = hasStumbled ? structuredClone(at.state) : undefined;
    const state = applyChange(at.state, copy, row.id, openers(store.changes.byNo(folded[at.count]!)!, reading));
    if (state) {
      at = { count: at.count + 1, state };
      chain.note(at.count, state);
    } else {
      // This is rare, so states are copied before a change is applied only once it has happened.
      hasStumbled = true;
      at = begin();
    }
  }
  return at.state;
}

/**
 * Applies one more change to a record, changing `state` in place. A change that breaks a rule leaves the record as it was, which
 * is `copy`; returns undefined where there is no copy.
 */
function applyChange(
  state: RecordState,
  copy: RecordState | undefined,
  id: string,
  change: OpenChange,
): RecordState | undefined {
  const { input, envelope, partsById } = change;
  const parts = (partsById.get(id) ?? []).filter((part) => !recordIdFault(part, input)).map(ownValues);
  let isLost = false;
  const again = (): RecordState => {
    isLost = copy === undefined;
    return copy ?? ABSENT;
  };
  const folded = foldTotally(state, again, id, parts, envelope, input.rules, input.body.traceIds);
  return isLost ? undefined : folded.state;
}

/**
 * The fold keeps values and later changes them in place, but an opened change is replayed more than once, so values are copied.
 */
function ownValues(part: RecordChange): RecordChange {
  if (part.ops.every((op) => typeof op.value !== "object" || op.value === null)) return part;
  return {
    ...part,
    ops: part.ops.map((op) => (op.value === undefined ? op : { ...op, value: structuredClone(op.value) })),
  };
}

/**
 * Returns the lamport of the first touch of a row that is outside the past; undefined when all touches are in it. The answer
 * holds until other work runs.
 */
async function firstOutside(
  { history }: SpaceStore,
  reading: Reading,
  past: Past,
  row: number,
): Promise<number | undefined> {
  if (past.lowestOutside === Number.POSITIVE_INFINITY) return undefined;
  let from = { lamport: past.lowestOutside, change: 0 };
  let seen = reading.graph.size;
  let revision = history.revisionOf(reading.object.no);
  for (;;) {
    const page = history.touchesAfter(row, from, TOUCHES_A_READ);
    const found = page.find(({ change }) => !past.has(change));
    if (found) return found.lamport;
    if (page.length < TOUCHES_A_READ) return undefined;
    from = page[page.length - 1]!;
    await reading.breathe();
    if (history.revisionOf(reading.object.no) === revision) {
      const missed = lowestTouch(history, row, reading.graph, seen, from.lamport);
      if (missed !== undefined) return missed;
    } else {
      // A body came, of a change that was there: it may touch the row anywhere.
      revision = history.revisionOf(reading.object.no);
      from = { lamport: past.lowestOutside, change: 0 };
    }
    seen = reading.graph.size;
  }
}

/** Returns the lowest lamport up to `upTo` at which a change that the graph got since `seen` touches a row; undefined where none does. */
function lowestTouch(
  history: HistoryTable,
  row: number,
  graph: HistoryGraph,
  seen: number,
  upTo: number,
): number | undefined {
  let lowest: number | undefined;
  for (let index = seen; index < graph.size; index++) {
    const [lamport, change] = [graph.lamportAt(index), graph.changeAt(index)];
    if (lamport > (lowest ?? upTo)) continue;
    const [next] = history.touchesAfter(row, { lamport, change: change - 1 }, 1);
    if (next?.lamport === lamport && next.change === change) lowest = lamport;
  }
  return lowest;
}

function currentState(store: SpaceStore, no: number): RecordState {
  const head = store.rows.byNo(no);
  return head ? foldedState(store.rows, head) : ABSENT;
}
