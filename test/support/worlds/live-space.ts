/** A space on disk with one object, for tests of live queries: real engine, real commits. */
import { join } from "node:path";
import { silentLog } from "../../../src/base/log.ts";
import type { RecordChange, RecordOp } from "../../../src/change/codec/change-body.ts";
import type { DatasetRules } from "../../../src/change/codec/dataset-rules.ts";
import type { ObjectEntry } from "../../../src/change/graph/object-cache.ts";
import type { ChangeEngine, WriteTx } from "../../../src/change/space-engine.ts";
import { createLiveQueries, type ReadTimes } from "../../../src/domain/live/live-queries.ts";
import type { LiveBody, LiveCollection, LiveEnd } from "../../../src/domain/live/live-request.ts";
import type { Reserve } from "../../../src/domain/live/live-window.ts";
import type { Json, JsonObject } from "../../../src/protocol/json.ts";
import { parseFilter } from "../../../src/query/filter/filter-parse.ts";
import type { QueryJob } from "../../../src/query/readers/reader-job.ts";
import type { ReaderPool } from "../../../src/query/readers/reader-pool.ts";
import { rowsOf } from "../../../src/query/rows/row-source.ts";
import { type QueryResult, runQuery } from "../../../src/query/run/run-query.ts";
import { parseSort } from "../../../src/query/value/sort.ts";
import { createdSpaceGenesis, type Space, type SpaceGenesis } from "../../../src/space/space.ts";
import { openReader } from "../../../src/store/database/database.ts";
import { loopTurns } from "../loop-turns.ts";
import { type ScratchDir, scratchDir } from "../scratch.ts";
import { createAccount } from "./acl-world.ts";
import { openSpaceIn } from "./test-space.ts";

export const DATASET = "things";
const RULES: DatasetRules = { name: DATASET, idRule: "user" };
const OBJECTS: DatasetRules = { name: "objects", idRule: "object" };

const ACCOUNT = createAccount(new Uint8Array(32).fill(7));
const CLOCK = { nowMs: () => 1_800_000_000_000 };

/** Nothing is ever read on the loop. */
export const ALWAYS_ASIDE: ReadTimes = { windowMs: -1, commitMs: -1, turnMs: Number.POSITIVE_INFINITY };
export const NEVER_ASIDE: ReadTimes = {
  windowMs: Number.POSITIVE_INFINITY,
  commitMs: Number.POSITIVE_INFINITY,
  turnMs: Number.POSITIVE_INFINITY,
};

export type LiveSpace = ReturnType<typeof assemble>;

interface LiveSpaceOptions {
  readTimes?: ReadTimes;
  reserve?: Reserve;
  /** The same space on another device, with what that one knows now. */
  replicaOf?: LiveSpace;
}

export async function openLiveSpace(options: LiveSpaceOptions = {}): Promise<LiveSpace> {
  const dir = scratchDir("svc-live");
  const genesis = options.replicaOf?.genesis ?? createdSpaceGenesis(ACCOUNT, CLOCK);
  const space = openSpaceIn(join(dir.path, "space.db"), genesis, {
    account: ACCOUNT,
    clock: CLOCK,
    registry: () => ({ rulesFor: (name) => ({ rules: name === "objects" ? OBJECTS : { ...RULES, name } }) }),
  });
  const { engine } = space;
  let objectId: string;
  if (options.replicaOf) {
    await engine.ingest(options.replicaOf.allChanges());
    objectId = options.replicaOf.object.idText;
  } else objectId = (await createObject(engine)).idText;
  return assemble(options, space, genesis, engine.object(objectId)!, dir);
}

const createObject = (engine: ChangeEngine, fields: JsonObject = {}): Promise<ObjectEntry> =>
  engine.write((tx) => {
    const object = tx.createObject();
    const value = { "svc.name": "thing", ...fields };
    const records = [{ id: "", upsert: true, ops: [{ type: "$set" as const, path: "", value }] }];
    tx.appendPartly(object, { dataset: "objects", records }, OBJECTS);
    return object;
  });

/** Reads aside over a connection of their own, as readers do, each held back for as long as a test wants. */
function createReaders(path: string) {
  const db = openReader(path);
  const held: (() => void)[] = [];
  let holding = false;
  let underWay = 0;
  return {
    async run(_path: string, job: QueryJob): Promise<QueryResult> {
      underWay++;
      try {
        if (holding) await new Promise<void>((resolve) => held.push(resolve));
        return runQuery(db, job.source, { ...job, filter: parseFilter(job.filter), sort: parseSort(job.sort) });
      } finally {
        underWay--;
      }
    },
    underWay: () => underWay,
    get heldCount() {
      return held.length;
    },
    hold(on: boolean): void {
      holding = on;
      if (!on) for (const go of held.splice(0)) go();
    },
    close: () => db.close(),
  };
}

/** Resolves when all that was written is committed and folded, and the windows have it; no read may be held. */
async function caughtUp(engine: ChangeEngine, readers: ReturnType<typeof createReaders>): Promise<void> {
  do {
    await engine.idle();
    await loopTurns(); // windows hear of a commit in the next turn
  } while (readers.underWay() > 0);
}

function assemble(
  options: LiveSpaceOptions,
  space: Space,
  genesis: SpaceGenesis,
  object: ObjectEntry,
  dir: ScratchDir,
) {
  const { engine, store } = space;
  const readers = createReaders(store.path);
  let broken: Error | undefined;
  const readRow: typeof store.rows.get = (collectionId, id) => {
    if (broken) throw broken;
    return store.rows.get(collectionId, id);
  };
  const live = createLiveQueries({
    engine,
    tables: { ...store, rows: { ...store.rows, get: readRow } },
    events: space.events,
    readers: readers as unknown as ReaderPool,
    log: silentLog,
    readTimes: options.readTimes ?? NEVER_ASIDE,
    ...(options.reserve ? { reserve: options.reserve } : {}),
  });

  const change = (tx: WriteTx, records: RecordChange[], dataset = DATASET) =>
    tx.appendPartly(tx.object(object.idText)!, { dataset, records }, { ...RULES, name: dataset });
  const write = (records: RecordChange[], dataset = DATASET) => engine.write((tx) => void change(tx, records, dataset));

  return {
    engine,
    store,
    live,
    object,
    collection: { objectId: object.idText, dataset: DATASET } as LiveCollection,
    genesis,
    createObject: (fields: JsonObject) => createObject(engine, fields),
    /** The changes of the space that came after the first `known`, parents first. */
    allChanges: (known = 0): Uint8Array[] => store.changes.after(known, 100_000).map(({ bytes }) => bytes),
    write,
    /** Several changes in one commit, however slow the machine is. */
    together: (lists: readonly RecordChange[][]) =>
      engine.write((tx) => {
        for (const records of lists) change(tx, records, DATASET);
      }),
    put: (id: string, fields: JsonObject) =>
      write([{ id, upsert: true, ops: [{ type: "$set", path: "", value: fields }] }]),
    op: (id: string, ...ops: RecordOp[]) => write([{ id, ops }]),
    remove: (...ids: string[]) => write(ids.map((id) => ({ id, ops: [], delete: true }))),
    setLocal: (id: string, fields: Record<string, Json | undefined>) =>
      engine.write((tx) => void tx.setLocal(tx.object(object.idText)!, DATASET, id, fields)),
    deleteObject: (target: ObjectEntry = object) =>
      engine.write((tx) => void tx.deleteObject(tx.object(target.idText)!)),

    /** What a query answers now. */
    query(collection: LiveCollection, body: LiveBody): JsonObject[] {
      const collectionId =
        collection === "objects" ? 0 : engine.collectionIdOf(engine.object(collection.objectId)!, collection.dataset);
      if (collectionId === undefined) return [];
      const request = { ...body, filter: parseFilter(body.filter), sort: parseSort(body.sort) };
      const result = runQuery(store.db, rowsOf(collectionId), request);
      return result.records.map((text) => JSON.parse(text) as JsonObject);
    },

    /** Holds the reads that go aside, or lets them through, until told otherwise. */
    hold: (on: boolean) => readers.hold(on),
    /** From now on live queries cannot read a row. */
    breakReads(error: Error): void {
      broken = error;
    },
    heldReads: () => readers.heldCount,
    caughtUp: () => caughtUp(engine, readers),
    async close(): Promise<void> {
      live.close();
      readers.close();
      await space.close();
      dir[Symbol.dispose]();
    },
  };
}

interface WireRecord {
  id: string;
  doc: JsonObject;
  ops?: { type: "$set" | "$unset"; path: string[]; payload?: Json }[];
}
export interface WireEntry {
  versionId: string;
  added?: WireRecord[];
  updated?: WireRecord[];
  removed?: { id: string; reason: string }[];
}

/** A subscriber as a client would be: applies frames to its snapshot, and objects to whatever does not fit. */
export async function watch(space: LiveSpace, body: LiveBody, collection = space.collection) {
  let changed = 0;
  let ended: LiveEnd | undefined;
  const { snapshot, subscription } = await space.live.subscribe(collection, body, {
    changed: () => void changed++,
    ended: (reason) => {
      ended = reason;
    },
  });
  const docs = new Map<string, JsonObject>();
  for (const text of snapshot.records) {
    const doc = JSON.parse(text) as JsonObject;
    docs.set(doc["id"] as string, doc);
  }

  const show = (entry: WireRecord, expectHeld: boolean): void => {
    if (docs.has(entry.id) !== expectHeld) throw new Error(`${entry.id} is ${expectHeld ? "not " : ""}held already`);
    if (entry.doc["id"] !== entry.id)
      throw new Error(`entry ${entry.id} carries the record ${String(entry.doc["id"])}`);
    const before = docs.get(entry.id);
    if (before) expectOps(before, entry);
    docs.set(entry.id, entry.doc);
  };

  return {
    snapshot,
    subscription,
    docs,
    get changed() {
      return changed;
    },
    get ended() {
      return ended;
    },
    ids: () => [...docs.keys()].sort(),
    /** Takes what there is, applies it and answers it. */
    take(): WireEntry[] {
      const changes = subscription.take();
      if (!changes) return [];
      const entries = JSON.parse(changes.json) as WireEntry[];
      for (const { added = [], updated = [], removed = [] } of entries) {
        for (const record of added) show(record, false);
        for (const record of updated) show(record, true);
        for (const { id } of removed) if (!docs.delete(id)) throw new Error(`${id} was removed but not held`);
      }
      return entries;
    },
  };
}

/** The ops of an update lead from the text held before to the one it brings, but for system fields. */
function expectOps(before: JsonObject, { id, doc, ops = [] }: WireRecord): void {
  const built = structuredClone(before);
  for (const { type, path, payload } of ops) {
    if (path.length > 0) assign(built, path, type === "$set" ? payload : undefined);
    else for (const [key, value] of Object.entries(payload as JsonObject)) assign(built, key.split("."), value);
  }
  if (!Bun.deepEquals(visible(built), visible(doc), true))
    throw new Error(`the ops of ${id} do not lead to its doc:\n${JSON.stringify({ before, ops, doc })}`);
}

function assign(doc: JsonObject, path: readonly string[], value: Json | undefined): void {
  let node = doc;
  for (const segment of path.slice(0, -1)) {
    const below = node[segment];
    if (typeof below !== "object" || below === null || Array.isArray(below)) {
      if (value === undefined) return;
      node[segment] = {};
    }
    node = node[segment] as JsonObject;
  }
  const key = path.at(-1)!;
  if (value === undefined) delete node[key];
  else node[key] = value;
}

function visible(doc: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(doc).filter(([key]) => !key.startsWith("_")));
}
