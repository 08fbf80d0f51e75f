import { equalBytes } from "../../base/bytes.ts";
import { accountIdOf, parseAccountId } from "../../crypto/account-id.ts";
import { refusedPart } from "../../protocol/errors.ts";
import type { HistoryChange, HistoryQuery } from "../../protocol/history.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { refusal } from "../../protocol/refusals.ts";
import { OBJECTS_COLLECTION } from "../../store/rows/row-table.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { HistoryFilter, ListedChange } from "../../store/tables/history-table.ts";
import type { RecordChange } from "../codec/change-body.ts";
import { OBJECTS_DATASET } from "../fold/projection.ts";
import { traceKey } from "../fold/trace-key.ts";
import type { ChangeEngine } from "../space-engine.ts";
import { decodeCursor, encodeCursor, type HistoryCursor } from "./cursor.ts";
import type { HistoryGraph } from "./graph.ts";
import { type ObjectRead, type Reading, versionId } from "./past.ts";
import { createOpeners, type OpenChange } from "./replay.ts";

/** How many entries of an index one step of a search passes over. */
const SEARCH_STEP = 5_000;
const CHANGES_A_READ = 100;
/** About how many changes the groups of one page may cover; the page ends early after that. */
const GROUPED_A_PAGE = 2_000;
const DEFAULT_WINDOW_S = 300;

interface ListDeps {
  engine: Pick<ChangeEngine, "replay">;
  store: SpaceStore;
}

type Page = { changes: HistoryChange[]; cursor?: string };

/**
 * Returns a page of an object's changes that the filters accept (HIST-1), newest first in the order of the fold. It ends early, with a
 * cursor, when it grows heavy. Errors: request.invalid_field.
 */
export async function listChanges(deps: ListDeps, read: ObjectRead | Reading, query: HistoryQuery): Promise<Page> {
  if (query.recordId && !query.dataset) throw needsDataset("recordId");
  const before = query.cursor ? decodeCursor(query.cursor) : undefined;
  const limit = pageLimit(query.limit);
  const filter = filterOf(deps.store, read, query);
  if (!filter) return { changes: [] };
  const pages = createEntries(deps, read);
  const changes: HistoryChange[] = [];
  let weight = 0;
  let grouped = 0;
  let end: HistoryCursor | undefined;
  let group: Group | undefined;
  const windowMs = (query.coalesceWindow || DEFAULT_WINDOW_S) * 1000;
  const close = () => {
    if (!group) return;
    const entry = pages.entryOf(group);
    weight += JSON.stringify(entry).length;
    grouped += group.size;
    changes.push(entry);
    end = group.oldest;
    group = undefined;
  };
  for await (const change of matching(deps.store, read, filter, before)) {
    await read.breathe();
    if (group && "graph" in read && pages.joins(read.graph, group, change, windowMs)) {
      pages.add(group, change);
      continue;
    }
    close();
    if (changes.length >= limit || weight >= LIMITS.historyPageBytes || grouped >= GROUPED_A_PAGE)
      return { changes, cursor: encodeCursor(end!) };
    group = pages.begin(change);
  }
  close();
  return { changes };
}

export function needsDataset(field: "recordId" | "recordIds") {
  const why = refusal("dataset.beside");
  return refusedPart("request.invalid_field", { field }, why, "colon", refusal("dataset.of_ids"));
}

function pageLimit(asked: number | undefined): number {
  return asked === undefined || asked <= 0 ? LIMITS.historyPageDefault : Math.min(asked, LIMITS.historyPageMax);
}

/** Returns the filter for the store; undefined when nothing can match. */
function filterOf(store: SpaceStore, { object }: ObjectRead, query: HistoryQuery): HistoryFilter | undefined {
  const filter: HistoryFilter = { objectNo: object.no };
  if (query.dataset) {
    const datasetNo = store.findDatasetNo(query.dataset);
    if (datasetNo === undefined) return undefined;
    filter.datasetNo = datasetNo;
    if (query.recordId) {
      const collectionId =
        query.dataset === OBJECTS_DATASET ? OBJECTS_COLLECTION : store.rows.findCollectionId(object.no, datasetNo);
      const row = collectionId === undefined ? undefined : store.rows.get(collectionId, query.recordId);
      if (!row) return undefined;
      filter.row = row.no;
    }
  }
  if (query.author) {
    const key = parseAccountId(query.author);
    const writers = key ? store.history.writersOf(key) : [];
    if (writers.length === 0) return undefined;
    filter.writers = writers;
  }
  if (query.traceId) filter.trace = traceKey(query.traceId);
  return filter;
}

/** Yields every change that a filter accepts, newest first; a search that finds little lets other work run in between. */
async function* matching(
  { history }: SpaceStore,
  read: ObjectRead,
  filter: HistoryFilter,
  from: HistoryCursor | undefined,
): AsyncGenerator<ListedChange> {
  let before: { lamport: number; id?: Uint8Array } = from ?? { lamport: Number.MAX_SAFE_INTEGER };
  for (;;) {
    const floor = history.windowFloor(filter, before.lamport, SEARCH_STEP);
    for (;;) {
      const page = history.page(filter, floor ?? 0, before, CHANGES_A_READ);
      yield* page;
      if (page.length < CHANGES_A_READ) break;
      before = page[page.length - 1]!;
    }
    if (floor === undefined) return;
    await read.breathe();
    before = { lamport: floor - 1 };
  }
}

/** The changes that one entry of a page represents, newest first. */
interface Group {
  newest: ListedChange;
  oldest: ListedChange;
  size: number;
  author: Uint8Array;
  /** The newest change, opened; for the others the entry only says what they touched. */
  open: OpenChange;
  touched: Map<string, Set<string>>;
  /** How many records and traces the group names. */
  named: number;
  traceIds: Set<string>;
}

function createEntries({ engine, store }: ListDeps, read: ObjectRead) {
  const openers = createOpeners(engine);
  const authors = new Map<number, Uint8Array>();

  const authorOf = (writer: number): Uint8Array => {
    let author = authors.get(writer);
    if (!author) {
      author = store.changes.writerByNo(writer).author;
      authors.set(writer, author);
    }
    return author;
  };

  const note = (group: Group, { input, partsById }: OpenChange) => {
    const { dataset, traceIds } = input.body;
    let ids = group.touched.get(dataset);
    if (!ids) {
      ids = new Set();
      group.touched.set(dataset, ids);
    }
    group.named -= ids.size + group.traceIds.size;
    for (const id of partsById.keys()) ids.add(id);
    for (const trace of traceIds ?? []) group.traceIds.add(trace);
    group.named += ids.size + group.traceIds.size;
  };

  return {
    begin(change: ListedChange): Group {
      const group: Group = {
        newest: change,
        oldest: change,
        size: 1,
        author: authorOf(change.writer),
        open: openers(store.changes.byNo(change.no)!, read),
        touched: new Map(),
        named: 0,
        traceIds: new Set(),
      };
      note(group, group.open);
      return group;
    },

    /** Whether a line of the author's own changes leads from the group straight down to this one, close enough in time. */
    joins(graph: HistoryGraph, group: Group, change: ListedChange, windowMs: number): boolean {
      if (group.size >= LIMITS.historyGroupChanges || group.named >= LIMITS.historyGroupRecords) return false;
      if (Math.abs(group.newest.timeMs - change.timeMs) > windowMs) return false;
      let at = graph.indexOf(group.oldest.no);
      while (at >= 0) {
        at = graph.lineBelow(at);
        if (at < 0 || !equalBytes(authorOf(graph.writerAt(at)), group.author)) return false;
        if (graph.changeAt(at) === change.no) return true;
        if (graph.lamportAt(at) <= change.lamport) return false;
      }
      return false;
    },

    add(group: Group, change: ListedChange): void {
      group.oldest = change;
      group.size++;
      note(group, openers(store.changes.byNo(change.no)!, read));
    },

    entryOf(group: Group): HistoryChange {
      const { newest, size, open } = group;
      const touched =
        size === 1
          ? [...open.partsById].map(([recordId, parts]) => ({
              dataset: open.input.body.dataset,
              recordId,
              ops: opsOf(parts),
            }))
          : [...group.touched].flatMap(([dataset, ids]) => [...ids].map((recordId) => ({ dataset, recordId })));
      return {
        version: versionId(newest),
        author: accountIdOf(group.author),
        timestamp: Math.floor(newest.timeMs / 1000),
        dataset: open.input.body.dataset,
        ...(group.traceIds.size > 0 ? { traceIds: [...group.traceIds] } : {}),
        touched,
        groupSize: size,
      };
    },
  };
}

/** Returns what was written to one record, as its author wrote it. */
function opsOf(parts: readonly RecordChange[]): { type: string; path: string; value?: unknown }[] {
  return parts.flatMap((part) => (part.delete ? [{ type: "$unset", path: "" }] : part.ops));
}
