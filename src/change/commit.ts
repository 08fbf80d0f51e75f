import { type CommitQueue, createCommitQueue, type WriteScope } from "../store/commit/commit-queue.ts";
import type { SpaceStore } from "../store/space-store.ts";
import type { ChangeVerdicts } from "./fold/change-verdicts.ts";
import type { CommitBatch, OpenBatch } from "./fold/commit-batch.ts";
import type { ObjectDeletions } from "./fold/object-deletions.ts";
import type { Projection } from "./fold/projection.ts";
import type { ObjectCache } from "./graph/object-cache.ts";
import type { Unblocked } from "./graph/unblocked.ts";
import type { WriterChains } from "./graph/writer-chains.ts";
import type { ChangeChecker } from "./intake/change-checker.ts";
import { createChangeIntake } from "./intake/change-intake.ts";
import type { Ingest } from "./intake/ingest.ts";
import type { LocalWriter } from "./local-writer.ts";
import { createLogErasure } from "./log-erasure.ts";
import type { Reactions } from "./reactions.ts";
import { createRefolding } from "./refolding.ts";

interface CommitsDeps {
  store: SpaceStore;
  objects: ObjectCache;
  chains: WriterChains;
  batch: OpenBatch;
  projection: Projection;
  verdicts: ChangeVerdicts;
  deletions: ObjectDeletions;
  reactions: Reactions;
  unblocked: Unblocked;
  ingest: Ingest;
  checker: ChangeChecker | undefined;
  writer: LocalWriter;
  /** Called after each commit that brought something, once its writers were answered. */
  committed(batch: CommitBatch): void;
  onFailure?: ((error: unknown) => void) | undefined;
}

/** The queue that everything written in a space goes through, what each of its commits does, and what brings it changes of others. */
export function createCommits(deps: CommitsDeps) {
  const { store, objects, chains, batch, projection, verdicts, deletions, reactions, unblocked, onFailure } = deps;
  const { ingest, checker } = deps;
  const queue: CommitQueue = createCommitQueue(store.db, {
    began,
    ran,
    commit,
    commitNotes,
    owedMs: projection.owedMs,
    onFailure: forget,
  });
  const intake = createChangeIntake({ queue, ingest, unblocked, checker, onFailure });
  const refolding = createRefolding(queue, projection, onFailure);
  const erasure = createLogErasure({ store, isClosed: queue.closing, onFailure });

  /** Undoes, with the savepoint that was just set, what subscribers would be notified of. */
  function began(scope: WriteScope): void {
    const forgetTouched = batch.savepoint();
    scope.onRollback(() => {
      forgetTouched();
      store.forgetNumbers();
    });
  }

  /** Each write: changes may have waited for what it brought, and are tried in the same batch if there is time. */
  function ran(): void {
    intake.goOn();
  }

  /** Every commit of changes, local ones and those of others alike: the writes of the batch have run and folded what they brought. */
  function commit(makeDurable: () => void): void {
    verdicts.retakeOf(batch.takeJudgedAnew()); // what came in decides which changes of a forked writer were accepted
    projection.finishBatch(); // records into whose middle something came are folded anew, a slice of them
    deletions.applyTouched(batch.touched()); // objects are gone, or back, as the deletion log says now
    projection.finishBatch();
    reactions.run(); // device-local fields follow
    projection.countLive();
    chains.flush(); // where each writer is
    store.sync.unconfirmPassedOver(store.changes.takeCountedAnew()); // nobody was asked to keep what did not count
    store.rowLog.writeNoted(); // what the search index is to read again
    makeDurable(); // COMMIT; then those who wrote are answered
    store.committed();
    objects.trim();
    const done = batch.take();
    deletions.tearDownSoon(queue, erasure.due, onFailure);
    if (done.touched.some(({ before, doc }) => before !== null && doc === null)) erasure.due();
    intake.goOn(); // changes may have waited for what followed from the batch, too
    const isUpToDate = refolding.go(); // what is left of them
    if (done.touched.length > 0 || done.objects.size > 0 || isUpToDate) deps.committed(done);
  }

  /** What is noted beside the log brings nothing that would follow from it. */
  function commitNotes(makeDurable: () => void): void {
    makeDurable();
    store.committed();
    refolding.retry();
  }

  /** A batch failed: whatever memory holds of it is worthless. */
  function forget(error: unknown): void {
    batch.take();
    store.forgetNumbers();
    projection.forgetBatch();
    chains.clear();
    store.rowLog.forgetNoted();
    unblocked.forgetBatch();
    objects.clear();
    deps.writer.forgetBatch();
    onFailure?.(error);
  }

  refolding.go(); // what was left when the space was closed

  return {
    queue,
    intake,
    erasure,
    /** Resolves when rows show all that is in the log. */
    refolded: refolding.done,
  };
}
