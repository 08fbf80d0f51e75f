import type { HistoryRecord } from "../../protocol/history.ts";
import { OBJECTS_DATASET } from "../fold/projection.ts";
import type { ChangeEngine } from "../space-engine.ts";
import { createViewBudget } from "./budget.ts";
import { changeOfVersion, type Reading, versionId } from "./past.ts";
import { createOpeners, type ReplayDeps, recordAt } from "./replay.ts";
import { datasetsOf, rowOf, rowsOf, stampModified } from "./rows.ts";

interface ViewDeps extends ReplayDeps {
  engine: Pick<ChangeEngine, "replay">;
}

/**
 * Returns the object's records as a version knows them (HIST-2), as JSON text `{version, datasets: [{dataset, records}]}`: synced fields
 * only, deleted records with `_deletedAt`. Empty datasets are left out unless asked for. Errors: history.version_not_found,
 * history.view_too_large, object.not_found.
 */
export async function viewAt(
  deps: ViewDeps,
  reading: Reading,
  version: string,
  dataset: string | undefined,
): Promise<string> {
  const { store } = deps;
  const change = changeOfVersion(store.changes, reading.object, version);
  const past = reading.past(change);
  const openers = createOpeners(deps.engine);
  const budget = createViewBudget();
  const shown = datasetsOf(store, reading.graph, past.hasIndex);
  const parts: string[] = [];
  for (const name of dataset === undefined ? shown : [dataset]) {
    const records: string[] = [];
    if (shown.includes(name)) {
      for await (const row of rowsOf(store, reading, name)) {
        const state = await recordAt(deps, openers, reading, past, row);
        if (state.kind === "absent") continue;
        if (name === OBJECTS_DATASET) await stampModified(store, reading, past, change, state);
        const text = JSON.stringify(state.doc);
        budget.take(text);
        records.push(text);
      }
    }
    if (records.length > 0 || dataset !== undefined)
      parts.push(`{"dataset":${JSON.stringify(name)},"records":[${records.join(",")}]}`);
  }
  return `{"version":"${versionId(change)}","datasets":[${parts.join(",")}]}`;
}

/** Returns one record as a version knows it. Errors: history.version_not_found, object.not_found. */
export async function recordViewAt(
  deps: ViewDeps,
  reading: Reading,
  version: string,
  dataset: string,
  recordId: string,
): Promise<HistoryRecord> {
  const { store } = deps;
  const change = changeOfVersion(store.changes, reading.object, version);
  const past = reading.past(change);
  const answer = { version: versionId(change), dataset, recordId };
  const isShown = datasetsOf(store, reading.graph, past.hasIndex).includes(dataset);
  const row = isShown ? rowOf(store, reading, dataset, recordId) : undefined;
  if (!row) return { ...answer, exists: false };
  const state = await recordAt(deps, createOpeners(deps.engine), reading, past, row);
  if (state.kind === "absent") return { ...answer, exists: false };
  if (dataset === OBJECTS_DATASET) await stampModified(store, reading, past, change, state);
  const record = state.doc as { id: string };
  return { ...answer, exists: true, ...(state.kind === "tombstone" ? { deleted: true } : {}), record };
}
