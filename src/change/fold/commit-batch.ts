import { bytesToHex } from "../../base/bytes.ts";
import type { Effect } from "./apply-op.ts";

/** One record that a commit changed, as live queries, the index and workers are told of it. */
export interface TouchedRecord {
  collectionId: number;
  object: string;
  dataset: string;
  recordId: string;
  /** Version text of the change, minted locally for device-local writes; empty when an object was deleted. */
  versionId: string;
  /** The whole record as it was stored before, or null when it was not live. */
  before: string | null;
  /** The whole record as stored, or null when it is no longer live. */
  doc: string | null;
  effects: Effect[];
  /** False for device-local and derived rewrites, which are no change of their own. */
  synced: boolean;
}

/** Everything one transaction did, told after it is durable. */
export interface CommitBatch {
  touched: TouchedRecord[];
  /** Objects whose heads moved, or of which a body is missed. */
  objects: Set<string>;
  /** Changes of this device, for sync to send. */
  localChanges: number;
}

const emptyBatch = (): CommitBatch => ({ touched: [], objects: new Set(), localChanges: 0 });

/** What the transaction under way has done so far: everybody in it adds to the same batch. */
export type OpenBatch = ReturnType<typeof createOpenBatch>;

export function createOpenBatch() {
  let current = emptyBatch();
  /** Authors (hex) whose changes are judged anew before the commit. */
  let judgedAnew = new Set<string>();
  return {
    touched: (): readonly TouchedRecord[] => current.touched,
    /** A record that is live neither before nor after is no news. */
    touch(record: TouchedRecord): void {
      if (record.before !== null || record.doc !== null) current.touched.push(record);
    },
    /** A change of this device was made. */
    countLocalChange(object: string | undefined): void {
      if (object !== undefined) current.objects.add(object);
      current.localChanges++;
    },
    /** Heads of an object moved, or what is stored of it changed: others are to be given it, or asked for it. */
    noteObject: (object: string): void => void current.objects.add(object),
    /** Answers how to forget what is touched and made from now on: for a write that is taken back. */
    savepoint(): () => void {
      const batch = current;
      const { localChanges } = batch;
      const count = batch.touched.length;
      return () => {
        batch.touched.length = count;
        batch.localChanges = localChanges;
      };
    },
    /** A change came in that tells which of its writer's changes were accepted: they are judged anew. */
    judgeAnew: (author: Uint8Array): void => void judgedAnew.add(bytesToHex(author)),
    takeJudgedAnew(): ReadonlySet<string> {
      const taken = judgedAnew;
      if (taken.size > 0) judgedAnew = new Set();
      return taken;
    },
    /** The batch as it is; the next one begins. */
    take(): CommitBatch {
      const done = current;
      current = emptyBatch();
      judgedAnew = new Set();
      return done;
    },
  };
}
