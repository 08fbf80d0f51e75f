import { createEvents } from "../../base/events.ts";
import type { RunStore, TriggerStore } from "../../domain/trigger/port.ts";
import { millisOf, RUNNING } from "../../domain/trigger/trigger-runs.ts";
import type { JsonObject } from "../../protocol/json.ts";
import type { Space } from "../../space/space.ts";
import type { SpaceEvents } from "../../space/space-events.ts";
import type { SpaceServices } from "../space-services.ts";
import { RUNS_DATASET, TRIGGERS_DATASET } from "./agent-datasets.ts";
import type { AgentSpace } from "./agent-space.ts";
import type { TraceFiles } from "./trace-files.ts";

export interface AgentRecords {
  readonly triggers: TriggerStore;
  readonly runs: RunStore;
  record(triggerId: string): JsonObject | undefined;
  runRow(runId: string): JsonObject | undefined;
  /** Whether a trigger of this id was deleted: it never comes back. */
  wasDeleted(triggerId: string): Promise<boolean>;
  /** Makes a record that is not there. */
  create(triggerId: string, fields: JsonObject): Promise<void>;
  /** Calls back when a trigger's record has changed, whoever changed it. Returns how to stop. */
  onChanged(listener: (triggerId: string) => void): () => void;
  close(): void;
}

interface AgentRecordsDeps {
  readonly agent: AgentSpace;
  readonly events: Pick<SpaceEvents, "on">;
  readonly traces: TraceFiles;
  readonly self: string;
  /** The space, open. */
  services(): Promise<SpaceServices>;
}

/**
 * The records of triggers and runs, held in memory beside the space, so that a tick does not read the store, and a thousand
 * triggers with fifty runs each need no scan.
 */
export async function openAgentRecords(deps: AgentRecordsDeps): Promise<AgentRecords> {
  const { agent, traces } = deps;
  const triggers = new Map<string, JsonObject>();
  const runs = new Map<string, JsonObject>();
  const runsByTrigger = new Map<string, Map<string, JsonObject>>();
  const events = createEvents<{ changed: [triggerId: string] }>();

  const take = (dataset: string, id: string, doc: JsonObject | undefined): void => {
    if (dataset === TRIGGERS_DATASET) {
      if (doc) triggers.set(id, doc);
      else triggers.delete(id);
      events.emit("changed", id);
      return;
    }
    const triggerId = (doc ?? runs.get(id))?.["triggerId"];
    if (typeof triggerId !== "string") return;
    const siblings = runsByTrigger.get(triggerId) ?? new Map<string, JsonObject>();
    runsByTrigger.set(triggerId, siblings);
    if (doc) {
      runs.set(id, doc);
      siblings.set(id, doc);
    } else {
      runs.delete(id);
      siblings.delete(id);
    }
  };
  const load = (space: Space, dataset: string): void => {
    const anchor = space.engine.object(agent.anchorId);
    if (!anchor) return;
    for (const doc of space.engine.records(anchor, dataset)) take(dataset, doc["id"] as string, doc);
  };
  const { space } = await deps.services();
  load(space, TRIGGERS_DATASET);
  load(space, RUNS_DATASET);
  // Subscribes last, and in the same turn: no commit is missed, and an earlier failure leaves no listener behind.
  const unfollow = deps.events.on("committed", (space, batch) => {
    if (space.id !== agent.spaceId) return;
    for (const { object, dataset, recordId, doc } of batch.touched) {
      if (object !== agent.anchorId || (dataset !== TRIGGERS_DATASET && dataset !== RUNS_DATASET)) continue;
      take(dataset, recordId, doc === null ? undefined : (JSON.parse(doc) as JsonObject));
    }
  });

  /** Writes, and takes the record as it is then, so that every read after the write sees it. */
  const write = async (dataset: string, id: string, set: JsonObject, unset: readonly string[] = [], upsert = false) => {
    const { records, space } = await deps.services();
    const ops = [
      ...Object.entries(set).map(([path, value]) => ({ type: "$set" as const, path, value })),
      ...unset.map((path) => ({ type: "$unset" as const, path })),
    ];
    await records.modify({ objectId: agent.anchorId, dataset, records: [{ id, upsert, ops }] });
    const anchor = space.engine.object(agent.anchorId);
    take(dataset, id, anchor && space.engine.record(anchor, dataset, id));
  };

  return {
    triggers: {
      list: () => [...triggers.values()],
      get: (triggerId) => triggers.get(triggerId),
      write: (triggerId, set, unset) => write(TRIGGERS_DATASET, triggerId, set, unset),
    },
    runs: {
      list: (triggerId) => newestFirst([...(runsByTrigger.get(triggerId)?.values() ?? [])]),
      running: () => [...runs.values()].filter(({ status, device }) => status === RUNNING && device === deps.self),
      insert: (runId, fields) => write(RUNS_DATASET, runId, fields, [], true),
      complete: (runId, fields) => write(RUNS_DATASET, runId, fields),
      keepTrace: (runId, trace) => traces.keep(runId, trace),
      async remove(runIds) {
        const { records } = await deps.services();
        const inFiles = runIds.filter((runId) => isTraceInFile(runs.get(runId)));
        await records.deleteRecords({ objectId: agent.anchorId, dataset: RUNS_DATASET, recordIds: [...runIds] });
        for (const runId of runIds) take(RUNS_DATASET, runId, undefined);
        if (inFiles.length > 0) await traces.remove(inFiles);
      },
    },
    record: (triggerId) => triggers.get(triggerId),
    runRow: (runId) => runs.get(runId),
    async wasDeleted(triggerId) {
      const { space } = await deps.services();
      return space.engine.write((tx) => {
        const anchor = tx.object(agent.anchorId);
        return tx.rollBackWith(
          anchor !== undefined && tx.recordState(anchor, TRIGGERS_DATASET, triggerId) === "tombstone",
        );
      });
    },
    create: (triggerId, fields) => write(TRIGGERS_DATASET, triggerId, fields, [], true),
    onChanged: (listener) => events.on("changed", listener),
    close: unfollow,
  };
}

/** Whether the trace of a run is too large for its row. */
export function isTraceInFile(row: JsonObject | undefined): boolean {
  return row?.["traceRef"] !== undefined && row["trace"] === undefined;
}

function newestFirst(rows: readonly JsonObject[]): JsonObject[] {
  const dated = rows.map((row) => ({ row, ms: millisOf(row["ts"]) ?? 0 }));
  return dated.sort((one, other) => other.ms - one.ms).map(({ row }) => row);
}
