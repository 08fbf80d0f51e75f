import type { SpaceId } from "../../base/ids.ts";
import { digestOfCid } from "../../crypto/cid.ts";
import type { JsonObject } from "../../protocol/json.ts";
import type { CommitQueue } from "../../store/commit/commit-queue.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { CHANGE_STUB, type StoredChange } from "../../store/tables/change-table.ts";
import { BODIES_GIVEN_UP } from "../../store/tables/pending-body-table.ts";
import { derivedTypeOf, encodeDerivedRoot } from "../codec/change-codec.ts";
import { stubOf } from "../codec/change-stub.ts";
import type { RulesRegistry } from "../codec/ports.ts";
import type { ObjectCache, ObjectEntry } from "../graph/object-cache.ts";
import type { TouchedRecord } from "./commit-batch.ts";
import { DELETIONS_DATASET, DELETIONS_TYPE, deletedAtMs } from "./deletion-log.ts";
import type { Deletion, Projection } from "./projection.ts";
import type { RecordReader } from "./record-reader.ts";
import type { TimeSeen } from "./time-seen.ts";

const TEAR_DOWN_ROWS = 500;
/** Whoever watches the rows of a deleted object is told of them first. */
const TEAR_DOWN_DELAY_MS = 500;
/**
 * How long the content of a deleted object is kept: until then an ACL record that somebody made before it had heard
 * of the deletion may take its author's right away, and the object is back.
 */
export const DELETED_GRACE_MS = 30 * 24 * 60 * 60 * 1000;
/** What is purged in one write. */
const PURGE_CHANGES = 100;
const PURGE_BYTES = 1 << 20;
const PURGE_TRACES = 500;

interface ObjectDeletionDeps {
  spaceId: SpaceId;
  store: SpaceStore;
  objects: ObjectCache;
  projection: Projection;
  registry: RulesRegistry;
  time: TimeSeen;
  records: RecordReader;
}

type Queue = Pick<CommitQueue, "enqueue" | "closing">;

export type ObjectDeletions = ReturnType<typeof createObjectDeletions>;

/** Keeps objects in step with the deletion log (CHANGE-8): their rows go at once, their content when there is time. */
export function createObjectDeletions({
  spaceId,
  store,
  objects,
  projection,
  registry,
  time,
  records,
}: ObjectDeletionDeps) {
  const { changes, rows } = store;
  let tearDownDue = false;
  const logRoot = encodeDerivedRoot({ space: digestOfCid(spaceId)!, type: DELETIONS_TYPE, derivation: "" });
  const logObject = () => objects.byId(logRoot.id);

  /** What everybody derives alike stays, whoever enters it into the log, but for what belongs to an object that may go. */
  const isDeletable = (object: ObjectEntry): boolean =>
    !object.derived || registry.endsWithItsRoot?.(derivedTypeOf(objects.rootOf(object.no)!)) === true;

  const deletionOf = (object: ObjectEntry): Deletion | undefined => {
    const holder = logObject();
    const entry = holder && records.record(holder, DELETIONS_DATASET, object.idText);
    return entry && { version: (entry["_ver"] as JsonObject)["id"] as string, timeMs: deletedAtMs(entry) };
  };

  /** Brings an object in step with its entry in the deletion log, present or not. */
  const apply = (object: ObjectEntry): void => {
    if (!isDeletable(object)) return;
    const deletion = deletionOf(object);
    if (deletion) {
      if (!object.deleted) {
        time.pass();
        objects.setDeleted(object, true, time.nowMs());
        store.pendingBodies.dropOfObject(object.no);
        store.dirtyRows.dropOfObject(object.no);
        tearDownDue = true;
      }
      projection.hideObjectRow(object, deletion);
    } else if (object.deleted) {
      objects.setDeleted(object, false, 0);
      if (store.pendingBodies.missStubs(object.no) > 0) store.putMeta(BODIES_GIVEN_UP, Uint8Array.of(1));
      projection.rebuildObject(object);
    }
  };

  /**
   * Drops the bodies of an object that is deleted, a slice a write; what cannot be read yet is kept until it can. Answers
   * how many.
   */
  const purgeObject = async (no: number, queue: Queue, isStopped: () => boolean): Promise<number> => {
    const { history, pendingBodies } = store;
    const keeps = ({ datasetNo, no: change }: StoredChange) =>
      datasetNo === 0 ? pendingBodies.has(change) : registry.outlives?.(store.datasetName(datasetNo)) === true;
    let after = { lamport: -1, no: 0 };
    let purged = 0;
    while (!queue.closing() && !isStopped()) {
      const isDone = await queue.enqueue(() => {
        const object = objects.byNo(no);
        if (!object?.deleted) return true;
        const page = changes.wholeOf(no, after, PURGE_CHANGES);
        let bytes = 0;
        for (const stored of page) {
          after = stored;
          if (keeps(stored)) continue;
          changes.setBytes(stored.no, stubOf(stored.bytes), CHANGE_STUB, 0);
          history.hide(no, stored.lamport, stored.no);
          purged++;
          bytes += stored.bytes.length;
          if (bytes >= PURGE_BYTES) break;
        }
        history.amended(no);
        if (page.length > 0 || history.dropTraces(no, PURGE_TRACES) > 0) return false;
        objects.setPurged(object);
        return true;
      }, "background");
      if (isDone) break;
    }
    return purged;
  };

  /** Removes the rows of deleted objects, a slice a write, so that other work goes on between. Their changes stay. */
  const tearDown = async (queue: Queue): Promise<void> => {
    if (queue.closing()) return;
    for (const collectionId of rows.collectionsOfDeleted()) {
      while (
        !queue.closing() &&
        !(await queue.enqueue(() => rows.tearDown(collectionId, TEAR_DOWN_ROWS), "background"))
      );
    }
  };

  return {
    apply,
    deletionOf,
    /** Whether the deletion log says that it is deleted. */
    isDeletedByLog: (object: ObjectEntry): boolean => isDeletable(object) && deletionOf(object) !== undefined,

    /** The same for every object whose entry a batch has touched. */
    applyTouched(touched: readonly TouchedRecord[]): void {
      const holder = logObject();
      if (!holder) return;
      for (const { dataset, object: of, recordId } of [...touched]) {
        if (dataset !== DELETIONS_DATASET || of !== holder.idText) continue;
        const id = digestOfCid(recordId);
        const object = id && objects.byId(id);
        if (object) apply(object);
      }
    },

    /** A change counts of which only the stub was kept: its body is missed from now on. */
    missBody({ no, objectNo, id }: StoredChange): void {
      store.pendingBodies.put(no, objectNo, "body", id);
      store.putMeta(BODIES_GIVEN_UP, Uint8Array.of(1));
    },

    /** After a commit: if objects were deleted, their rows go a little later. */
    tearDownSoon(queue: Queue, onDone: () => void, onFailure: ((error: unknown) => void) | undefined): void {
      if (!tearDownDue) return;
      tearDownDue = false;
      const timer = setTimeout(() => {
        tearDown(queue).then(onDone, (error: unknown) => onFailure?.(error));
      }, TEAR_DOWN_DELAY_MS);
      timer.unref();
    },

    tearDown,

    /** When this device learned of an object's deletion is not known any more: as of now, and that it is to be purged. */
    dateAnew(no: number): void {
      const object = objects.byNo(no);
      if (!object) return;
      time.pass();
      objects.setDeleted(object, object.deleted, object.deleted ? time.nowMs() : 0);
    },

    /**
     * Of what was deleted at least DELETED_GRACE_MS ago, as this device saw time pass, stubs are kept: the bodies are
     * overwritten in the file. What is left when `isStopped` comes to hold waits for the next time. Answers how many.
     */
    async purge(queue: Queue, isStopped: () => boolean): Promise<number> {
      if (objects.purgeable(Number.MAX_SAFE_INTEGER).length === 0) return 0;
      await queue.enqueue(() => time.pass(), "background");
      let purged = 0;
      for (const no of objects.purgeable(time.nowMs() - DELETED_GRACE_MS))
        purged += await purgeObject(no, queue, isStopped);
      return purged;
    },
  };
}
