import { equalBytes } from "../base/bytes.ts";
import type { SpaceId } from "../base/ids.ts";
import { inSlices } from "../base/slices.ts";
import { decodeAclRecord } from "./record.ts";
import { applyAclRecord } from "./reducer.ts";
import { decodeSpaceHeader, type SpaceHeader } from "./space-header.ts";
import { type AclState, emptyAcl } from "./state.ts";

/** What an ACL log says that is not kept here. */
export interface OfferedAcl {
  readonly header: SpaceHeader;
  readonly state: AclState;
}

/**
 * Judges an ACL log that somebody offers of a space, from its root on: undefined when its root is not that space's. Whatever
 * does not follow what came before it is passed over, since anybody may have put it there.
 */
export function judgeOfferedAcl(spaceId: SpaceId, records: readonly Uint8Array[]): Promise<OfferedAcl | undefined> {
  return inSlices(judging(spaceId, records));
}

/** One record a step: each costs a signature. */
function* judging(spaceId: SpaceId, records: readonly Uint8Array[]): Generator<void, OfferedAcl | undefined> {
  const [root] = records;
  const header = root && headerOfRoot(spaceId, root);
  if (!header) return undefined;
  const state = emptyAcl();
  for (const bytes of records) {
    yield;
    const record = decodeAclRecord(bytes);
    const isNext = record && (state.head ? record.prev && equalBytes(record.prev, state.head) : !record.prev);
    if (record && isNext) applyAclRecord(state, record, header);
  }
  return state.head ? { header, state } : undefined;
}

/** The header that the first record of an ACL log carries, if the record is that space's root. */
function headerOfRoot(spaceId: SpaceId, bytes: Uint8Array): SpaceHeader | undefined {
  const record = decodeAclRecord(bytes);
  const root = record?.ops[0];
  if (!record || root?.op !== "root") return undefined;
  const encoded = decodeSpaceHeader(root.header);
  if (encoded?.spaceId !== spaceId) return undefined;
  return "fault" in applyAclRecord(emptyAcl(), record, encoded.header) ? undefined : encoded.header;
}

/** Whether the first record of an ACL log is the root of that space, by its header, its signature and its ops. */
export const isRootOf = (spaceId: SpaceId, bytes: Uint8Array): boolean => headerOfRoot(spaceId, bytes) !== undefined;
