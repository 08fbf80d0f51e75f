import type { Rejection } from "../../change/fold/projection.ts";
import type { Appended } from "../../change/local-writer.ts";
import { cidFromDigest } from "../../crypto/cid.ts";

/** A collection to read, and how its declared paths are to be understood. */
export interface QuerySource {
  /** Undefined: nothing was ever written there. */
  collectionId: number | undefined;
  dataset: string;
}

/** What every dataset write answers (DATA-1). Both ids are empty when nothing was written. */
export interface WriteResult {
  versionId: string;
  changeId: string;
  /** In input order; on a create element 0 is the id the server derived. */
  recordIds: string[];
}

/** The same of a write of which the rules may drop a part. */
export interface PartialWriteResult extends WriteResult {
  /** Present only when something was dropped. */
  rejections?: readonly Rejection[];
}

export function toWriteResult({ effective, changeId, recordIds }: Appended): WriteResult {
  const id = effective ? cidFromDigest(changeId) : "";
  return { versionId: id, changeId: id, recordIds };
}

export const toPartialWriteResult = (appended: Appended): PartialWriteResult => ({
  ...toWriteResult(appended),
  ...rejectionsIn(appended),
});

/** What was dropped; nothing where nothing was. */
export const rejectionsIn = ({ rejections }: Pick<Appended, "rejections">): Pick<PartialWriteResult, "rejections"> =>
  rejections.length === 0 ? {} : { rejections };
