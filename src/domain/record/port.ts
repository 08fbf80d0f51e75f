import type { Rejection } from "../../change/fold/projection.ts";
import type { Appended } from "../../change/local-writer.ts";
import { cidFromDigest } from "../../crypto/cid.ts";
import { refusalText } from "../../protocol/refusals.ts";

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
  rejections?: RejectionReply[];
}

/** An entry or op that was dropped; `opIndex` -1 stands for the whole entry. */
interface RejectionReply extends Omit<Rejection, "refusal"> {
  reason: string;
}

export function toWriteResult(appended: Appended): WriteResult {
  const id = appended.effective ? cidFromDigest(appended.changeId) : "";
  return {
    versionId: id,
    changeId: id,
    recordIds: appended.recordIds,
    ...rejectionsIn(appended),
  };
}

/** What was dropped, in words; nothing where nothing was. */
export function rejectionsIn({ rejections }: { rejections: readonly Rejection[] }): Pick<WriteResult, "rejections"> {
  if (rejections.length === 0) return {};
  return { rejections: rejections.map(({ refusal, ...where }) => ({ ...where, reason: refusalText(refusal) })) };
}
