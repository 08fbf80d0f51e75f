import type { ChangeId } from "../../base/ids.ts";
import { cidFromDigest, digestOfCid } from "../../crypto/cid.ts";
import { refusedAs, svcError } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { ChangeTable, StoredChange } from "../../store/tables/change-table.ts";
import { namedChange } from "../graph/named-change.ts";
import type { ObjectCache, ObjectEntry } from "../graph/object-cache.ts";
import type { Ancestors, HistoryGraph } from "./graph.ts";
import type { Graphs } from "./graphs.ts";
import { createSlices, type Slices } from "./slice.ts";

/** The changes of which a version is the fold: its causal past, without whatever else is known by now. */
export interface Past {
  /** Whether the change with this number is in it. */
  has(change: number): boolean;
  /** Whether the change with this index in the graph is in it. */
  hasIndex(index: number): boolean;
  /** The lowest lamport of a change of the object that is not in it; Infinity when there is none. */
  readonly lowestOutside: number;
  /** Nothing in it has a higher lamport. */
  readonly topLamport: number;
}

/** A long read of an object. Other work goes on while it lasts: the object may get new changes, or be deleted. */
export interface ObjectRead {
  readonly object: ObjectEntry;
  /** Lets other work run if this read has held it up for long. */
  breathe(): Promise<void>;
}

/** A read with the object's graph. After each `breathe`, every past takes account of the changes that came. */
export interface Reading extends ObjectRead {
  readonly graph: HistoryGraph;
  past(version: StoredChange, strictly?: boolean): Past;
}

export interface ReadDeps {
  objects: ObjectCache;
  /** The store is closed. */
  isClosed(): boolean;
}

/** Begins a read. Errors: object.not_found, also when the object is deleted meanwhile; server.unavailable. */
export function beginObjectRead(
  { objects, isClosed }: ReadDeps,
  objectId: string,
  signal?: AbortSignal,
): ObjectRead & { slices: Slices } {
  const slices = createSlices(() => isClosed() || signal?.aborted === true);
  const find = (): ObjectEntry => {
    const id = digestOfCid(objectId);
    const object = id && objects.byId(id);
    if (!object || object.deleted) throw svcError("object.not_found", { objectId });
    return object;
  };
  let object = find();
  return {
    slices,
    get object() {
      return object;
    },
    async breathe() {
      if (!slices.due()) return;
      await slices.pause();
      object = find();
    },
  };
}

/** Begins to read an object's past: the object, its graph and the versions in it. */
export async function beginReading(
  deps: ReadDeps & { graphs: Graphs },
  objectId: string,
  signal?: AbortSignal,
): Promise<Reading> {
  const read = beginObjectRead(deps, objectId, signal);
  let graph = await deps.graphs.of(read.object.no, read.slices);
  let seen = graph.size;
  const pasts: Ancestors[] = [];

  return {
    get object() {
      return read.object;
    },
    get graph() {
      return graph;
    },
    past(version, strictly = false) {
      const index = graph.indexOf(version.no);
      const ancestors = graph.ancestors(index < 0 ? [] : [index], strictly);
      pasts.push(ancestors);
      return {
        has(change) {
          const at = graph.indexOf(change);
          return at >= 0 && ancestors.member[at] === 1;
        },
        hasIndex: (at) => ancestors.member[at] === 1,
        get lowestOutside() {
          return ancestors.lowestOutside;
        },
        topLamport: version.lamport,
      };
    },
    async breathe() {
      if (!read.slices.due()) return;
      await read.breathe();
      graph = await deps.graphs.of(read.object.no, read.slices);
      for (const past of pasts) graph.refresh(past, seen);
      seen = graph.size;
    },
  };
}

/** Returns the change that a version names, by its id or by a text that `_ver` holds. Errors: history.version_not_found. */
export function changeOfVersion(changes: ChangeTable, object: ObjectEntry, version: string): StoredChange {
  const digest = digestOfCid(version);
  if (digest) {
    const found = changes.byId(digest);
    if (found?.objectNo === object.no) return found;
  }
  const found = namedChange(changes, object.no, version);
  if (found) return found;
  throw refusedAs("history.version_not_found", { version }, refusal("history.no_such_version"));
}

export const versionId = (change: Pick<StoredChange, "id">): ChangeId => cidFromDigest(change.id) as ChangeId;
