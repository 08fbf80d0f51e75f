import type { Rejection } from "../../change/fold/projection.ts";
import type { Appended } from "../../change/local-writer.ts";
import { cidFromDigest } from "../../crypto/cid.ts";

/** A collection to read, and how its declared paths are to be understood. */
export interface QuerySource {
  /** Undefined: nothing was ever written there. */
  collectionId: number | undefined;
  dataset: string;
}

/** Reply of every dataset write (DATA-1). Both ids are empty when nothing was written. */
export interface WriteResult {
  versionId: string;
  changeId: string;
  /** In input order; on a create element 0 is the id the server derived. */
  recordIds: string[];
  /** Present only when something was dropped. */
  rejections?: Rejection[];
}

export function toWriteResult(appended: Appended): WriteResult {
  const id = appended.effective ? cidFromDigest(appended.changeId) : "";
  return {
    versionId: id,
    changeId: id,
    recordIds: appended.recordIds,
    ...(appended.rejections.length > 0 ? { rejections: appended.rejections } : {}),
  };
}
