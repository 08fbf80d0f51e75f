import { refusedAs } from "../../protocol/errors.ts";
import type { HistoryDiff, HistoryDiffQuery, HistoryQuery, HistoryRecord } from "../../protocol/history.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { ObjectEntry } from "../graph/object-cache.ts";
import type { ChangeEngine } from "../space-engine.ts";
import { causalPast } from "./causal-past.ts";
import { diffAt } from "./diff.ts";
import { createGraphs } from "./graphs.ts";
import { listChanges, needsDataset } from "./list.ts";
import { createHistoryMemory, type HistoryMemory } from "./memory.ts";
import { beginObjectRead, beginReading } from "./past.ts";
import { createFoldedStates } from "./states.ts";
import { recordViewAt, viewAt } from "./view.ts";

interface HistoryDeps {
  engine: Pick<ChangeEngine, "objects" | "replay" | "closing">;
  store: SpaceStore;
  /** Throws space.not_joined where this account may not read the space's content any more. */
  requireReader?(): void;
  /** Shared by all open spaces. */
  memory?: HistoryMemory;
}

/** The version history of a space's objects. A version is a change; its state is the fold of the change's causal past. */
export type History = ReturnType<typeof createHistory>;

export function createHistory({ engine, store, requireReader, memory = createHistoryMemory() }: HistoryDeps) {
  const { objects } = engine;
  const owner = memory.nextOwner();
  const graphs = createGraphs(store.history, objects, memory.graphs, owner);
  const deps = { engine, store, states: createFoldedStates(memory.states, owner) };
  let running = 0;
  let closed = false;
  const reads = { objects, graphs, isClosed: () => closed };

  const counted = async <T>(run: () => Promise<T>): Promise<T> => {
    requireReader?.();
    running++;
    try {
      return await run();
    } finally {
      running--;
    }
  };
  const begin = (objectId: string, signal?: AbortSignal) => beginReading(reads, objectId, signal);

  return {
    /** `GET {O}/history`. Errors: object.not_found, request.invalid_field. */
    list: (objectId: string, query: HistoryQuery, signal?: AbortSignal) =>
      counted(async () => {
        const read = query.coalesce ? await begin(objectId, signal) : beginObjectRead(reads, objectId, signal);
        return listChanges(deps, read, query);
      }),

    /** `GET {O}/history/:version`, as JSON text. An empty dataset is none. Errors: see `viewAt`. */
    view: (objectId: string, version: string, dataset?: string, signal?: AbortSignal): Promise<string> =>
      counted(async () => viewAt(deps, await begin(objectId, signal), version, dataset || undefined)),

    /** `GET {O}/history/:version/datasets/:dataset/records/:recordId`. Errors: see `recordViewAt`. */
    recordView: (
      objectId: string,
      version: string,
      dataset: string,
      recordId: string,
      signal?: AbortSignal,
    ): Promise<HistoryRecord> =>
      counted(async () => recordViewAt(deps, await begin(objectId, signal), version, dataset, recordId)),

    /** `GET {O}/history/diff`. Errors: see `diffAt`; request.missing_field, request.invalid_field. */
    diff: (objectId: string, query: HistoryDiffQuery, signal?: AbortSignal): Promise<HistoryDiff> =>
      counted(async () => {
        const { version, base, dataset, recordIds } = query;
        if (!version) throw refusedAs("request.missing_field", { field: "version" }, refusal("history.no_version"));
        if (recordIds && !dataset) throw needsDataset("recordIds");
        return diffAt(deps, await begin(objectId, signal), {
          version,
          ...(base ? { base } : {}),
          ...(dataset ? { dataset } : {}),
          ...(recordIds ? { recordIds: recordIds.split(",").filter((id) => id !== "") } : {}),
        });
      }),

    /** What the authors of some versions of an object knew; see `causalPast`. */
    causalPast: (object: ObjectEntry, versions: readonly string[], since: string) =>
      causalPast({ store, closing: engine.closing }, object, versions, since),

    /** Whether a read is going on; its space stays open until it ends. */
    busy: () => running > 0,
    close(): void {
      closed = true;
      memory.graphs.dropPrefix(owner);
      memory.states.dropPrefix(owner);
    },
  };
}
