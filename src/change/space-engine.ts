import { bytesToHex } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import type { ObjectId, SpaceId } from "../base/ids.ts";
import { cidFromDigest, digestOfCid } from "../crypto/cid.ts";
import type { Signer } from "../crypto/sign.ts";
import type { WriteScope } from "../store/commit/commit-queue.ts";
import type { SpaceStore } from "../store/space-store.ts";
import type { StoredChange } from "../store/tables/change-table.ts";
import { createChecks } from "./check/checks.ts";
import { createBodyOpener } from "./codec/body-opener.ts";
import { encodeDerivedRoot } from "./codec/change-codec.ts";
import type { ChangeEnvelope } from "./codec/dataset-rules.ts";
import type { AclConsequences, AclView, KeyRing, OnRepair, RulesRegistry } from "./codec/ports.ts";
import { createCommits } from "./commit.ts";
import type { ReplayInput } from "./fold/change-parts.ts";
import { createVerdicts } from "./fold/change-verdicts.ts";
import { type CommitBatch, createOpenBatch } from "./fold/commit-batch.ts";
import { createObjectDeletions } from "./fold/object-deletions.ts";
import { createProjection } from "./fold/projection.ts";
import { createRecordReader } from "./fold/record-reader.ts";
import { createRowRepair } from "./fold/row-repair.ts";
import { createTimeSeen } from "./fold/time-seen.ts";
import { createChangeLog } from "./graph/change-log.ts";
import { createDamagedChanges } from "./graph/damaged-changes.ts";
import { createChangeNames } from "./graph/named-change.ts";
import { createObjectCache, type ObjectEntry } from "./graph/object-cache.ts";
import { createUnblocked } from "./graph/unblocked.ts";
import { createWriterChains } from "./graph/writer-chains.ts";
import type { ChangeChecker } from "./intake/change-checker.ts";
import { createIngest } from "./intake/ingest.ts";
import type { IngestVerdict } from "./intake/ingest-verdict.ts";
import { DEFAULT_PARK_QUOTA, type ParkQuota } from "./intake/set-aside.ts";
import { createLocalVersions } from "./local-version.ts";
import { createLocalWriter } from "./local-writer.ts";
import { createReactions } from "./reactions.ts";
import { createWriteTx, type WriteTx } from "./write-tx.ts";

export type { Reaction } from "./reactions.ts";
export type { WriteTx } from "./write-tx.ts";

/** Raised when a handler or the fold gives other rows for the same changes: objects are then folded anew. */
export const PROJECTION_VERSION = 4;
/** The writer that this device continues here. */
export const WRITER_KEY = "writer";
/** A turn of the loop folds for so long, but for the change it is at. */
const FOLD_SLICE_MS = 8;
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
  /** False where nobody ever asks for the history; its index is then not kept. Default true. */
  keepsHistory?: boolean;
  /** How many ops of a record lie between two checkpoints of it. */
  checkpointEveryOps?: number;
  /** How long a turn of the loop folds what others sent; the rest is left to those that follow. */
  foldSliceMs?: number;
  /** Verifies large batches of changes on another thread. Without it all are verified where they are written. */
  checker?: ChangeChecker | undefined;
  /** Called after each commit that brought something, once its writers were answered. It must not throw. */
  committed(batch: CommitBatch): void;
  /** Called with a failure to commit, which also reached every waiter. */
  onFailure?(error: unknown): void;
  /** Called when the disk changed something that was stored. */
  onRepair?: OnRepair | undefined;
}

export type ChangeEngine = ReturnType<typeof createChangeEngine>;

/** The engine of one space: one writer connection, one commit queue, one fold for local and remote changes alike. */
export function createChangeEngine(deps: ChangeEngineDeps) {
  const { spaceId, store, acl, keys, registry, signer, clock, onFailure } = deps;
  const { changes, parked } = store;
  const foldSliceMs = deps.foldSliceMs ?? FOLD_SLICE_MS;
  const objects = createObjectCache(store.db, changes, PROJECTION_VERSION);
  const chains = createWriterChains(changes);
  const log = createChangeLog(changes, objects, chains);
  const opener = createBodyOpener(spaceId, keys);
  const batch = createOpenBatch();
  const onRepair: OnRepair = (code, facts) => deps.onRepair?.(code, facts);
  const damaged = createDamagedChanges({ store, objects, onRepair, onMissed: batch.noteObject });
  const projection = createProjection({
    spaceId,
    store,
    keepsHistory: deps.keepsHistory !== false,
    objects,
    opener,
    registry,
    batch,
    damaged,
    checkpointEveryOps: deps.checkpointEveryOps,
    foldSliceMs,
    onRepair,
  });
  const records = createRecordReader(store);
  const unblocked = createUnblocked(store);
  const time = createTimeSeen(store, clock);
  const deletions = createObjectDeletions({ spaceId, store, objects, projection, registry, time, records });
  const repairRow = createRowRepair({ store, objects, projection, deletions, onRepair });
  store.rows.repairBy(repairRow);
  const writerStore = {
    load: () => store.meta(WRITER_KEY),
    save: (id: Uint8Array) => store.putMeta(WRITER_KEY, id),
  };
  const { datasetNo } = store;
  const local = {
    spaceId,
    log,
    chains,
    objects,
    projection,
    opener,
    acl,
    keys,
    signer,
    clock,
    datasetNo,
    writerStore,
    unblocked,
  };
  const writer = createLocalWriter(local);
  const quota = deps.quota ?? DEFAULT_PARK_QUOTA;
  const judged = {
    spaceId,
    store,
    log,
    chains,
    objects,
    projection,
    opener,
    acl,
    registry,
    clock,
    quota,
    foldSliceMs,
    onFailure,
  };
  const ingest = createIngest({ ...judged, unblocked, batch, deletions });
  const verdicts = createVerdicts({
    changes,
    objects,
    acl,
    projection,
    onBodyMissed: deletions.missBody,
    onUnfolded: ingest.foldLater,
  });
  const localVersion = createLocalVersions(clock);
  const object = (id: string) => objects.byText(id);
  const reactions = createReactions(batch, {
    object,
    record: records.record,
    setLocal: (of, name, id, fields) => projection.setLocal(of, name, id, fields, localVersion()),
  });
  const { checker, committed } = deps;
  const committing = { store, objects, chains, batch, projection, verdicts, deletions, reactions, unblocked, writer };
  const { queue, intake, erasure, refolded } = createCommits({ ...committing, ingest, checker, committed, onFailure });
  const { check, ...mending } = createChecks({
    ...judged,
    verdicts,
    deletions,
    damaged,
    repairRow,
    queue,
    batch,
    keepsHistory: deps.keepsHistory !== false,
    foldLater: ingest.foldLater,
    takeAgain: intake.take,
    isTrying: unblocked.due,
    onRepair,
  });
  const given = { store, objects, records, writer, projection, batch, unblocked, localVersion };
  retryLaterVersions();

  return {
    spaceId,
    objects,
    opener,
    /** The bytes of a stored change for others; undefined, and set aside, when the disk changed them. */
    soundBytes: (stored: StoredChange): Uint8Array | undefined =>
      stored.bytes.length === 0 || damaged.setAside(stored) ? undefined : stored.bytes,
    /**
     * Everything that `run` does becomes durable together, or nothing: it is when this resolves. `run` may be run more than once,
     * each time but the last undone: when another write of its batch throws, or when it becomes large.
     */
    write: <T>(run: (tx: WriteTx) => T): Promise<T> => queue.enqueue((scope) => run(createWriteTx(given, scope))),

    /** The same for what sync notes beside the log, which touches neither changes nor rows: nothing follows from it. */
    writeNotes: (run: () => void): Promise<void> => queue.note(run),

    /**
     * Takes in changes of other replicas, in any order; one verdict each. When it resolves, all are durable, and the
     * changes that waited for them have been tried again. Rows may be folded with them later: `isOwing` until then.
     */
    take: (many: readonly Uint8Array[]): Promise<IngestVerdict[]> => intake.take(many),

    /** The same; and rows show what came when it resolves. */
    async ingest(many: readonly Uint8Array[]): Promise<IngestVerdict[]> {
      const verdicts = await intake.take(many);
      await refolded();
      return verdicts;
    },

    /** Whether rows are older than the log. */
    isOwing: projection.isOwing,

    /** Work of the store's own that can wait until writers had their turn; a slice of a few milliseconds at most. */
    background: <T>(run: () => T): Promise<T> => queue.enqueue(() => run(), "background"),

    /**
     * A write that changes the ACL. `run` takes records in and answers, beside its result, what follows from them; this is
     * carried out in the same transaction. Changes that waited for it are tried after it.
     */
    async changeAcl<T>(run: (scope: WriteScope) => { result: T; consequences?: AclConsequences }): Promise<T> {
      const act = (scope: WriteScope): T => {
        const { result, consequences } = run(scope);
        if (!consequences) return result;
        if (consequences.repositionFrom !== undefined) verdicts.repositionFrom(consequences.repositionFrom);
        verdicts.retakeOf(new Set(consequences.revoked.map(bytesToHex)));
        unblocked.noteRecords(consequences.named, scope);
        if (consequences.keys) unblocked.noteAll("key");
        return result;
      };
      const result = await queue.enqueue(act, "local", "first");
      await refolded();
      return result;
    },

    /** The ACL changed: every verdict is taken anew, the records concerned are folded again. Answers how many verdicts changed. */
    async recheckVerdicts(): Promise<number> {
      const changedCount = await queue.enqueue(() => verdicts.retakeAll(), "background", "first");
      await intake.idle();
      await refolded();
      return changedCount;
    },

    /** Folds every object anew from its changes, a write each, so that other work goes on between. */
    async rebuildProjection(only: "stale" | "all" = "all"): Promise<number> {
      const numbers = only === "all" ? objects.all().map((object) => object.no) : objects.stale();
      for (const no of numbers) {
        const rebuild = () => {
          const found = objects.byNo(no);
          if (found && !found.deleted) projection.rebuildObject(found);
          objects.setProjection(no, PROJECTION_VERSION);
        };
        await queue.enqueue(rebuild, "background", "first");
      }
      return numbers.length;
    },

    ...mending,

    /** Looks at a page of what is stored, and repairs what the disk changed. Answers where the next page begins. */
    check,

    tearDownDeleted: () => deletions.tearDown(queue),
    /** Drops the content of what was deleted long ago. Answers how many changes. To be called daily. */
    async purgeDeleted(isStopped: () => boolean = () => false): Promise<number> {
      const purged = await deletions.purge(queue, isStopped);
      if (purged > 0) erasure.due();
      return purged;
    },

    object,
    /** The id that the derived object of (type, derivation) has here, whether it is made yet or not. */
    derivedId: (type: string, derivation: string): ObjectId =>
      cidFromDigest(encodeDerivedRoot({ space: digestOfCid(spaceId)!, type, derivation }).id) as ObjectId,
    record: records.record,
    recordText: records.recordText,
    records: records.records,
    recordTexts: records.recordTexts,
    recordsWithLocal: records.recordsWithLocal,
    recordState: records.recordState,
    collectionIdOf: records.collectionIdOf,
    lastPosition: records.lastPosition,
    /** A stored change as the fold takes it, for folding what is not the present state. */
    replay(
      stored: StoredChange,
      of: ObjectEntry,
    ): { input: ReplayInput & { readonly openedBytes: number }; envelope: ChangeEnvelope } {
      const input = projection.replayOf(stored, of);
      return { input, envelope: projection.envelopeOf(input) };
    },
    /** Another device was found to use this one's writer: continue under a fresh one. */
    mintWriter: () => queue.enqueue(() => writer.mintWriter()),
    writerId: () => writer.writerId(),
    /** The local number of its chain, once it has written. */
    writerNo(): number | undefined {
      const id = writer.writerId();
      return id && changes.writer(signer.publicKey, id)?.no;
    },

    ...createChangeNames(changes, object),

    /** One reaction a dataset. */
    reactTo: reactions.add,

    /** A single value that is kept beside the space, under a name of its own. `WriteTx` puts and drops it. */
    note: store.meta,
    /** Whether a write is being run, so that what is read may yet be taken back. */
    isWriting: () => store.db.inTransaction,
    idle: () => queue.idle(),
    /** Whether it is closed, or about to be: whoever works with it over several turns has to stop. */
    closing: () => queue.closing(),
    /** What was enqueued is done before. The store stays open. */
    async close(): Promise<void> {
      await queue.close();
      erasure.close();
    },
  };

  /** This version may be able to read what an earlier one could not. */
  function retryLaterVersions(): void {
    if (!parked.nextOfKind("version", NOTHING, NOTHING)) return;
    queue.enqueue(() => unblocked.noteAll("version"), "background").catch((error: unknown) => onFailure?.(error));
  }
}
