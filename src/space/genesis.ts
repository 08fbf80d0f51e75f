import { isRootOf } from "../acl/offered-log.ts";
import type { EpochOp } from "../acl/op.ts";
import { decodeAclRecord, encodeAclRecord } from "../acl/record.ts";
import type { EncodedHeader } from "../acl/space-header.ts";
import type { SpaceId } from "../base/ids.ts";
import { cidFromDigest } from "../crypto/cid.ts";
import type { Signer } from "../crypto/sign.ts";

/** What makes a space, complete: writing it out twice gives the same space. */
export interface SpaceGenesis {
  spaceId: SpaceId;
  header: Uint8Array;
  aclRoot: { id: Uint8Array; bytes: Uint8Array };
}

/** Header and root of a space with its first epoch. `time` is Unix milliseconds, 0 where every device must agree. */
export function makeGenesis(encoded: EncodedHeader, signer: Signer, time: number, epoch: EpochOp): SpaceGenesis {
  const aclRoot = encodeAclRecord(
    { space: encoded.digest, prev: null, time, clock: 0, ops: [{ op: "root", header: encoded.bytes, epoch }] },
    signer,
  );
  return { spaceId: encoded.spaceId, header: encoded.bytes, aclRoot };
}

/**
 * The genesis in the first record of an ACL log, which carries the space's header; undefined for anything else, and for a
 * record that is not the root of the space it names: what is written from it would never open.
 */
export function genesisOfRoot(bytes: Uint8Array): SpaceGenesis | undefined {
  const record = decodeAclRecord(bytes);
  const root = record?.ops[0];
  if (!record || root?.op !== "root") return undefined;
  const spaceId = cidFromDigest(record.space) as SpaceId;
  if (!isRootOf(spaceId, bytes)) return undefined;
  return { spaceId, header: root.header, aclRoot: { id: record.id, bytes } };
}
