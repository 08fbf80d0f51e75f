import type { Effect } from "./record-fold.ts";

/** One record that a commit changed, as live queries, the index and workers are told of it. */
export interface TouchedRecord {
  collectionId: number;
  object: string;
  dataset: string;
  recordId: string;
  /** Version text of the change, minted locally for device-local writes; empty when an object was deleted. */
  versionId: string;
  wasLive: boolean;
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
  /** Objects whose heads moved. */
  objects: Set<string>;
  /** Changes of this device, for sync to send. */
  localChanges: number;
}

export function createBatch(): CommitBatch {
  return { touched: [], objects: new Set(), localChanges: 0 };
}
