import { bytesToHex, equalBytes, utf8ToBytes } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import type { ObjectId, SpaceId } from "../base/ids.ts";
import { cidFromDigest, digestOfCid } from "../crypto/cid.ts";
import type { Signer } from "../crypto/sign.ts";
import type { Json, JsonObject } from "../protocol/json.ts";
import type { StoredChange } from "../store/change-table.ts";
import { createCommitQueue, RollBackWith, type WriteScope } from "../store/commit-queue.ts";
import type { WaitKind } from "../store/parked-table.ts";
import { ROW_LIVE, type RowState } from "../store/row-table.ts";
import type { SpaceStore } from "../store/space-store.ts";
import { createBodyOpener } from "./codec/body-opener.ts";
import type { ChangeBody } from "./codec/change-body.ts";
import { encodeDerivedRoot } from "./codec/change-codec.ts";
import type { ChangeEnvelope, DatasetRules } from "./codec/dataset-rules.ts";
import { parseVersion, versionOf, writerName } from "./codec/version.ts";
import type { ReplayInput } from "./fold/change-parts.ts";
import { createVerdicts } from "./fold/change-verdicts.ts";
import { type CommitBatch, createOpenBatch, type TouchedRecord } from "./fold/commit-batch.ts";
import { findCollection } from "./fold/datasets.ts";
import { DELETION_RULES, DELETIONS_DATASET, DELETIONS_TYPE } from "./fold/deletion-log.ts";
import { BODIES_GIVEN_UP, createObjectDeletions } from "./fold/object-deletions.ts";
import { createProjection } from "./fold/projection.ts";
import { createChangeLog } from "./graph/change-log.ts";
import { createObjectCache, type ObjectEntry } from "./graph/object-cache.ts";
import type { ChangeChecker } from "./intake/change-checker.ts";
import { createChangeIntake } from "./intake/change-intake.ts";
import { createIngest, DEFAULT_PARK_QUOTA, type ParkQuota } from "./intake/ingest.ts";
import type { IngestVerdict } from "./intake/ingest-verdict.ts";
import { type Appended, createLocalWriter } from "./local-writer.ts";
import { createLogErasure } from "./log-erasure.ts";
import type { AclConsequences, AclView, KeyRing, RulesRegistry } from "./ports.ts";

/** Raised when a handler or the fold gives other rows for the same changes: objects are then folded anew. */
export const PROJECTION_VERSION = 3;
/** The writer that this device continues here. */
export const WRITER_KEY = "writer";
/** Whoever watches the rows of a deleted object is told of them first. */
const TEAR_DOWN_DELAY_MS = 500;
const NOTHING = new Uint8Array(0);

export interface ChangeEngineDeps {
  spaceId: SpaceId;
  store: SpaceStore;
  acl: AclView;
  keys: KeyRing;
  registry: RulesRegistry;
  signer: Signer;
  clock: Clock;
  quota?: ParkQuota;
  /** False where nobody ever asks for the history: its index is not kept then. Default true. */
  keepsHistory?: boolean;
  /** How many ops of a record lie between two checkpoints of it. */
  checkpointEveryOps?: number;
  /** Verifies large batches of changes on another thread; without it all are verified where they are written. */
  checker?: ChangeChecker | undefined;
  /** Told of a failure to commit, which also reached every waiter. */
  onFailure?(error: unknown): void;
}

/** What a write may do. Everything in it becomes durable together or not at all. */
export interface WriteTx {
  scope: WriteScope;
  createObject(): ObjectEntry;
  ensureDerived(type: string, derivation: string): ObjectEntry;
  object(id: string): ObjectEntry | undefined;
  /** One change to an object. Nothing of it taking effect is no reason to fail; see `Appended.effective`. */
  append(object: ObjectEntry, body: ChangeBody, rules: DatasetRules): Appended;
  /** Runs a part of the write that is undone alone when it throws; the error goes on to the caller. */
  attempt<T>(part: () => T): T;
  /** Rolls this write back and answers `result` all the same. */
  rollBackWith(result: unknown): never;
  setLocal(
    object: ObjectEntry,
    dataset: string,
    recordId: string,
    fields: Readonly<Record<string, Json | undefined>>,
  ): boolean;
  record(object: ObjectEntry, dataset: string, id: string): JsonObject | undefined;
  /** Is the record there at all, and how? */
  recordState(object: ObjectEntry, dataset: string, id: string): "absent" | "live" | "tombstone";
  /** The same of many, as the store has them: those that never were are left out. */
  recordStates(object: ObjectEntry, dataset: string, ids: readonly string[]): Map<string, RowState>;
  /** Enters an object into the deletion log; false when it is there. Its row disappears with this commit. */
  deleteObject(object: ObjectEntry): boolean;
  /** What this batch has done so far, earlier writes included: for caches that follow records. */
  touched(): readonly TouchedRecord[];
  /** A version text for what no change carries (device-local writes). */
  localVersion(): string;
}

/**
 * Keeps device-local fields in step with what was just folded, inside the same transaction, so that a crash never parts
 * the two. Must not throw for content it does not like: that would fail everybody's commit.
 */
export type Reaction = (
  touched: readonly TouchedRecord[],
  local: Pick<WriteTx, "object" | "record" | "setLocal">,
) => void;

export type ChangeEngine = ReturnType<typeof createChangeEngine>;

/** The engine of one space: one writer connection, one commit queue, one fold for local and remote changes alike. */
export function createChangeEngine(deps: ChangeEngineDeps) {
  const { store, acl, registry, clock } = deps;
  const { changes, rows, parked } = store;
  const objects = createObjectCache(store.db, changes, PROJECTION_VERSION);
  const log = createChangeLog(changes, objects);
  const opener = createBodyOpener(deps.spaceId, deps.keys);
  const batch = createOpenBatch();
  const listeners = new Set<(batch: CommitBatch) => void>();
  const reactions = new Map<string, Reaction>();
  let localVersions = 0;
  /** Authors (hex) whose changes are judged anew before the commit. */
  const unsettled = new Set<string>();

  const projection = createProjection({
    spaceId: deps.spaceId,
    store,
    keepsHistory: deps.keepsHistory !== false,
    objects,
    opener,
    registry,
    batch,
    checkpointEveryOps: deps.checkpointEveryOps,
  });
  const writer = createLocalWriter({
    spaceId: deps.spaceId,
    log,
    objects,
    projection,
    opener,
    acl,
    keys: deps.keys,
    signer: deps.signer,
    clock,
    datasetNo: store.datasetNo,
    writerStore: { load: () => store.meta(WRITER_KEY), save: (id) => store.putMeta(WRITER_KEY, id) },
    onDerivedRoot: (id, scope) => arrived("change", id, scope),
  });
  const ingest = createIngest({
    spaceId: deps.spaceId,
    changes,
    parked,
    arrivals: store.arrivals,
    unopened: store.unopened,
    log,
    objects,
    projection,
    opener,
    acl,
    registry,
    writer,
    clock,
    onFailure: deps.onFailure,
    quota: deps.quota ?? DEFAULT_PARK_QUOTA,
    datasetNo: store.datasetNo,
    onRoot: (object) => deletions.settle(object),
    onCompleted: (object) => store.history.amended(object.no),
    onSettled: (author) => unsettled.add(bytesToHex(author)),
  });

  const deletions = createObjectDeletions({
    spaceId: deps.spaceId,
    store,
    objects,
    projection,
    registry,
    clock,
    record: (object, dataset, id) => record(object, dataset, id),
  });
  const verdicts = createVerdicts({
    changes,
    objects,
    acl,
    projection,
    onBodyMissed({ no, obj, id }) {
      store.unopened.put(no, obj, "body", id);
      store.putMeta(BODIES_GIVEN_UP, Uint8Array.of(1));
    },
  });

  const react = (): void => {
    if (reactions.size === 0) return;
    const folded = batch.touched().filter((touched) => touched.synced && reactions.has(touched.dataset));
    for (const dataset of new Set(folded.map((touched) => touched.dataset))) {
      reactions.get(dataset)!(
        folded.filter((touched) => touched.dataset === dataset),
        {
          object: objectById,
          record,
          setLocal: (object, name, id, fields) => projection.setLocal(object, name, id, fields, localVersion()),
        },
      );
    }
  };

  const queue = createCommitQueue(store.db, {
    beforeCommit() {
      verdicts.retakeOf(unsettled);
      unsettled.clear();
      projection.finishBatch();
      deletions.settleTouched(batch.touched());
      projection.finishBatch();
      react();
      projection.countLive();
      log.flush();
    },
    owedMs: projection.owedMs,
    told() {
      store.committed();
      const done = batch.take();
      objects.trim();
      if (deletions.takeDue()) {
        setTimeout(() => {
          deletions.tearDown(queue).then(erasure.due, (error: unknown) => deps.onFailure?.(error));
        }, TEAR_DOWN_DELAY_MS).unref();
      }
      if (done.touched.some(({ wasLive, doc }) => wasLive && doc === null)) erasure.due();
      if (done.touched.length === 0 && done.objects.size === 0) return;
      for (const listener of listeners) listener(done);
    },
    onFailure(error) {
      batch.take();
      store.forgetNumbers();
      projection.forgetBatch();
      unsettled.clear();
      log.clear();
      ingest.arrivals.forgetBatch();
      objects.clear();
      writer.forgetBatch();
      deps.onFailure?.(error);
    },
  });

  const erasure = createLogErasure({ store, isClosed: queue.closing, onFailure: deps.onFailure });

  /** Keeps what subscribers would be told in step with the savepoint that was just set. */
  const followRollback = (scope: WriteScope): void => {
    const forget = batch.place();
    scope.onRollback(() => {
      forget();
      store.forgetNumbers();
    });
  };
  const guarded =
    <T>(run: (scope: WriteScope) => T) =>
    (scope: WriteScope): T => {
      followRollback(scope);
      return run(scope);
    };
  const intake = createChangeIntake({ queue, ingest, checker: deps.checker, guarded, onFailure: deps.onFailure });
  intake.start();
  retryLaterVersions();

  /** Changes may have waited for it. */
  const arrived = (kind: WaitKind, what: Uint8Array, scope: WriteScope): void => {
    ingest.arrivals.note(kind, what, scope);
    intake.start();
  };

  const collectionIdOf = (object: ObjectEntry, dataset: string) => findCollection(store, object, dataset);
  const record = (object: ObjectEntry, dataset: string, id: string): JsonObject | undefined => {
    const collectionId = collectionIdOf(object, dataset);
    const head = collectionId === undefined ? undefined : rows.get(collectionId, id);
    return head && head.state === ROW_LIVE && head.doc !== null ? (JSON.parse(head.doc) as JsonObject) : undefined;
  };
  const objectById = (id: string): ObjectEntry | undefined => {
    const digest = digestOfCid(id);
    return digest ? objects.byId(digest) : undefined;
  };

  const txOf = (scope: WriteScope): WriteTx => ({
    scope,
    createObject: () => writer.createObject(scope),
    ensureDerived: (type, derivation) => writer.ensureDerived(type, derivation, scope),
    object: objectById,
    append(object, body, rules) {
      const appended = writer.append(object, body, rules, scope);
      batch.countLocalChange(object.idText);
      for (const name of appended.defined ?? []) arrived("definition", utf8ToBytes(name), scope);
      return appended;
    },
    attempt: (part) =>
      scope.attempt(() => {
        followRollback(scope);
        return part();
      }),
    rollBackWith(result) {
      throw new RollBackWith(result);
    },
    setLocal: (object, dataset, recordId, fields) =>
      projection.setLocal(object, dataset, recordId, fields, localVersion()),
    record,
    recordState(object, dataset, id) {
      const collectionId = collectionIdOf(object, dataset);
      const head = collectionId === undefined ? undefined : rows.get(collectionId, id);
      return !head || head.state === 0 ? "absent" : head.state === 1 ? "live" : "tombstone";
    },
    recordStates(object, dataset, ids) {
      const collectionId = collectionIdOf(object, dataset);
      return collectionId === undefined ? new Map() : rows.statesOf(collectionId, ids);
    },
    deleteObject(object) {
      const { effective } = writer.append(
        writer.ensureDerived(DELETIONS_TYPE, "", scope),
        { dataset: DELETIONS_DATASET, records: [{ id: object.idText, upsert: true, ops: [] }] },
        DELETION_RULES,
        scope,
      );
      batch.countLocalChange(undefined);
      return effective;
    },
    touched: batch.touched,
    localVersion,
  });

  /** Sorts after every version this device has seen and is never stored in a change. */
  function localVersion(): string {
    const stamp = Buffer.alloc(8);
    stamp.writeBigUInt64BE(BigInt(++localVersions) + (BigInt(clock.nowMs()) << 20n));
    return versionOf(Number.MAX_SAFE_INTEGER, stamp);
  }

  return {
    spaceId: deps.spaceId,
    store,
    objects,
    opener,
    write: <T>(run: (tx: WriteTx) => T): Promise<T> => queue.enqueue(guarded((scope) => run(txOf(scope)))),

    /**
     * Takes in changes of other replicas, in any order; one verdict each. All are durable when it resolves, and what waited
     * for them was tried again.
     */
    ingest: (many: readonly Uint8Array[]): Promise<IngestVerdict[]> => intake.take(many),

    /** Work of the store's own that can wait until writers had their turn; a slice of a few milliseconds at most. */
    background: <T>(run: () => T): Promise<T> => queue.enqueue(() => run(), "background"),

    /**
     * A write that moves the ACL: `run` takes records in and answers, beside its result, what follows from them, which
     * is carried out in the same transaction; changes that waited for it are tried behind it.
     */
    moveAcl: <T>(run: (scope: WriteScope) => { result: T; consequences?: AclConsequences }): Promise<T> =>
      queue.enqueue(
        guarded((scope) => {
          const { result, consequences } = run(scope);
          if (consequences) {
            if (consequences.repositionFrom !== undefined) verdicts.repositionFrom(consequences.repositionFrom);
            verdicts.retakeOf(new Set(consequences.cut.map(bytesToHex)));
            for (const id of consequences.named) arrived("acl", id, scope);
            if (consequences.keys) {
              ingest.arrivals.noteAll("key");
              intake.start();
            }
          }
          return result;
        }),
      ),

    /** The ACL changed: every verdict is taken anew and the records concerned are folded again. Answers how many moved. */
    recheckVerdicts: (): Promise<number> =>
      queue.enqueue(
        guarded(() => verdicts.retakeAll()),
        "background",
      ),

    /** Folds every object anew from its changes, a write each, so that other work goes on between. */
    async rebuildProjection(only: "stale" | "all" = "all"): Promise<number> {
      const numbers = only === "all" ? objects.all().map((object) => object.no) : objects.stale();
      for (const no of numbers) {
        await queue.enqueue(
          guarded(() => {
            const object = objects.byNo(no);
            if (object && !object.deleted) projection.rebuildObject(object);
            objects.setProjection(no, PROJECTION_VERSION);
          }),
          "background",
        );
      }
      return numbers.length;
    },

    tearDownDeleted: () => deletions.tearDown(queue),
    async purgeDeleted(): Promise<number> {
      const purged = await deletions.purge(queue);
      if (purged > 0) erasure.due();
      return purged;
    },

    object: objectById,
    /** The id that the derived object of (type, derivation) has here, whether it is made yet or not. */
    derivedId: (type: string, derivation: string): ObjectId =>
      cidFromDigest(encodeDerivedRoot({ space: digestOfCid(deps.spaceId)!, type, derivation }).id) as ObjectId,
    record,
    collectionIdOf,
    /** A stored change as the fold takes it, for folding what is not the present state. */
    replay(stored: StoredChange, object: ObjectEntry): { input: ReplayInput; envelope: ChangeEnvelope } {
      const input = projection.replayOf(stored, object);
      return { input, envelope: projection.envelopeOf(input) };
    },
    /** Another device was found to use this one's writer: continue under a fresh one. */
    mintWriter: () => queue.enqueue(() => writer.mintWriter()),
    writerId: () => writer.writerId(),

    /** Which writer's which change a version text of an object stands for. Writers are named by a short hash. */
    originOf(objectId: string, version: string): { writer: string; seq: number } | undefined {
      const object = objectById(objectId);
      const place = parseVersion(version);
      if (!object || !place) return undefined;
      const change = changes
        .atLamport(object.no, place.lamport)
        .find(({ id }) => equalBytes(id.subarray(0, place.idPrefix.length), place.idPrefix));
      const writtenBy = change && changes.writerByNo(change.writer);
      return writtenBy && { writer: writerName(writtenBy.author, writtenBy.id), seq: change.seq };
    },

    /** One reaction a dataset. */
    reactTo: (dataset: string, reaction: Reaction) => void reactions.set(dataset, reaction),

    /** Called after each commit, once its writers were answered. Answers how to stop. */
    onCommit(listener: (batch: CommitBatch) => void): () => void {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    idle: () => queue.idle(),
    /** Whether it is closed, or about to be: whoever works with it over several turns has to stop. */
    closing: () => queue.closing(),
    async close(): Promise<void> {
      await queue.close();
      erasure.stop();
      await store.settled();
      store.close();
    },
  };

  /** What an earlier version of the program could not read, this one may. */
  function retryLaterVersions(): void {
    if (!parked.nextOfKind("version", NOTHING, NOTHING)) return;
    queue
      .enqueue(() => ingest.arrivals.noteAll("version"), "background")
      .then(intake.start, (error: unknown) => deps.onFailure?.(error));
  }
}
