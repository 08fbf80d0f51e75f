import type { HistoryDiff, HistoryFieldDiff, HistoryRecordDiff } from "../../protocol/history.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { OBJECTS_DATASET } from "../fold/projection.ts";
import type { RecordState } from "../fold/record-fold.ts";
import type { ChangeEngine } from "../space-engine.ts";
import { createViewBudget } from "./budget.ts";
import { changeOfVersion, type Reading, versionId } from "./past.ts";
import { createOpeners, type Openers, type ReplayDeps, recordAt } from "./replay.ts";
import { datasetsOf, type RowRef, rowOf, rowsOf } from "./rows.ts";

/** Up to this many changes are opened to learn what they touched; for more, the store is asked which of them touched each row. */
const OPENED_AT_MOST = 256;
const TOUCHES_A_READ = 500;

interface DiffDeps extends ReplayDeps {
  engine: Pick<ChangeEngine, "replay">;
}

export interface DiffRequest {
  version: string;
  base?: string;
  dataset?: string;
  recordIds?: readonly string[];
}

/**
 * Returns what leads from one version's records to another's, leaf by leaf (HIST-3). Without a base, it compares with the state on which
 * the version was written. Concurrent versions are two causal pasts, compared both ways. Bookkeeping such as `_ver`, and
 * `modifiedAt` of an object's row, is left out. Errors: history.version_not_found, history.view_too_large, object.not_found.
 */
export async function diffAt(deps: DiffDeps, reading: Reading, request: DiffRequest): Promise<HistoryDiff> {
  const { store } = deps;
  const target = changeOfVersion(store.changes, reading.object, request.version);
  const base = request.base === undefined ? undefined : changeOfVersion(store.changes, reading.object, request.base);
  const after = reading.past(target);
  const before = base ? reading.past(base) : reading.past(target, true);
  const { graph } = reading;
  const between: number[] = [];
  for (let index = 0; index < graph.size; index++) {
    if (before.hasIndex(index) !== after.hasIndex(index)) between.push(index);
  }
  const differing = new Set(between);
  const openers = createOpeners(deps.engine);
  const budget = createViewBudget();
  const datasets: HistoryDiff["datasets"] = [];
  for (const dataset of datasetsOf(store, graph, (index) => differing.has(index))) {
    if (request.dataset !== undefined && request.dataset !== dataset) continue;
    const records: HistoryRecordDiff[] = [];
    for await (const row of changedRows(deps, openers, reading, dataset, between, request.recordIds)) {
      const diff = diffRecord(
        row.id,
        dataset,
        await recordAt(deps, openers, reading, before, row),
        await recordAt(deps, openers, reading, after, row),
      );
      if (!diff) continue;
      budget.take(JSON.stringify(diff));
      records.push(diff);
    }
    if (records.length > 0) datasets.push({ dataset, records });
  }
  return { ...(base ? { base: versionId(base) } : {}), version: versionId(target), datasets };
}

/** Yields, by id, the rows of a dataset that the given changes (by index in the graph) touched. */
async function* changedRows(
  { store }: DiffDeps,
  openers: Openers,
  reading: Reading,
  dataset: string,
  between: readonly number[],
  recordIds: readonly string[] | undefined,
): AsyncGenerator<RowRef> {
  const { graph } = reading;
  const datasetNo = store.findDatasetNo(dataset);
  const withinDataset = between.filter((index) => graph.datasetNoAt(index) === datasetNo);
  let ids = recordIds;
  if (!ids && withinDataset.length <= OPENED_AT_MOST) {
    const found = new Set<string>();
    for (const index of withinDataset) {
      for (const id of openers(store.changes.byNo(graph.changeAt(index))!, reading).partsById.keys()) found.add(id);
      await reading.breathe();
    }
    ids = [...found];
  }
  if (ids) {
    for (const id of [...new Set(ids)].sort()) {
      const row = rowOf(store, reading, dataset, id);
      if (row) yield row;
    }
    return;
  }
  const changes = new Set(withinDataset.map((index) => graph.changeAt(index)));
  let lowest = Number.POSITIVE_INFINITY;
  for (const index of withinDataset) lowest = Math.min(lowest, graph.lamportAt(index));
  for await (const row of rowsOf(store, reading, dataset)) {
    if (await isTouchedBy(store, reading, row.no, lowest, changes)) yield row;
    await reading.breathe();
  }
}

async function isTouchedBy(
  store: SpaceStore,
  reading: Reading,
  row: number,
  lowest: number,
  changes: ReadonlySet<number>,
): Promise<boolean> {
  let from = { lamport: lowest, change: 0 };
  for (;;) {
    const page = store.history.touchesAfter(row, from, TOUCHES_A_READ);
    if (page.some((touch) => changes.has(touch.change))) return true;
    if (page.length < TOUCHES_A_READ) return false;
    from = page[page.length - 1]!;
    await reading.breathe();
  }
}

/** Returns how a record differs between two states; undefined when callers see no difference. */
export function diffRecord(
  id: string,
  dataset: string,
  before: RecordState,
  after: RecordState,
): HistoryRecordDiff | undefined {
  const old = before.kind === "live" ? before.doc : undefined;
  const next = after.kind === "live" ? after.doc : undefined;
  if (!old && !next) return undefined;
  const fields = diffLeaves(leavesOf(old ?? {}, dataset), leavesOf(next ?? {}, dataset));
  if (old && next) return fields.length > 0 ? { id, kind: "changed", fields } : undefined;
  return { id, kind: next ? "added" : "deleted", ...(fields.length > 0 ? { fields } : {}) };
}

interface Leaf {
  path: string[];
  value: Json;
}

/**
 * Splits a record into its leaves: every value that is not an object, and empty objects. A record is the set of its leaves. A
 * diff is therefore applied by removing the leaves without `after`, with the objects that this empties, and then setting the
 * others.
 */
function leavesOf(doc: JsonObject, dataset: string): Map<string, Leaf> {
  const leaves = new Map<string, Leaf>();
  const walk = (value: Json, path: string[]) => {
    if (isJsonObject(value) && Object.keys(value).length > 0) {
      for (const [key, below] of Object.entries(value)) walk(below, [...path, key]);
    } else leaves.set(JSON.stringify(path), { path, value });
  };
  for (const [key, value] of Object.entries(doc)) {
    if (key === "id" || key.startsWith("_") || (dataset === OBJECTS_DATASET && key === "modifiedAt")) continue;
    walk(value, [key]);
  }
  return leaves;
}

function diffLeaves(old: ReadonlyMap<string, Leaf>, next: ReadonlyMap<string, Leaf>): HistoryFieldDiff[] {
  const fields: HistoryFieldDiff[] = [];
  for (const [key, { path, value }] of old) {
    const after = next.get(key);
    if (!after) fields.push({ path, before: value });
    else if (!Bun.deepEquals(value, after.value, true)) fields.push({ path, before: value, after: after.value });
  }
  for (const [key, { path, value }] of next) if (!old.has(key)) fields.push({ path, after: value });
  return fields;
}
