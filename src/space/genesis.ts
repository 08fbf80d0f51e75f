import { isRootOf } from "../acl/log/offered-log.ts";
import type { EpochOp } from "../acl/record/op.ts";
import { decodeAclRecord, encodeAclRecord } from "../acl/record/record.ts";
import type { EncodedHeader } from "../acl/record/space-header.ts";
import type { SpaceId } from "../base/ids.ts";
import { cidFromDigest } from "../crypto/cid.ts";
import type { Signer } from "../crypto/sign.ts";

/** All that makes a space. Writing it a second time gives the same space. */
export interface SpaceGenesis {
  spaceId: SpaceId;
  header: Uint8Array;
  aclRoot: { id: Uint8Array; bytes: Uint8Array };
}

/**
 * Header and root of a space with its first epoch. `time` is Unix milliseconds, or 0 where every device must compute the
 * same.
 */
export function makeGenesis(encoded: EncodedHeader, signer: Signer, time: number, epoch: EpochOp): SpaceGenesis {
  const aclRoot = encodeAclRecord(
    { space: encoded.digest, prev: null, time, clock: 0, ops: [{ op: "root", header: encoded.bytes, epoch }] },
    signer,
  );
  return { spaceId: encoded.spaceId, header: encoded.bytes, aclRoot };
}

/**
 * The genesis in the first record of an ACL log, which carries the space's header. Undefined for anything else, also for a
 * record that is not the root of the space that it names: a space written from that would never open.
 */
export function genesisOfRoot(bytes: Uint8Array): SpaceGenesis | undefined {
  const record = decodeAclRecord(bytes);
  const root = record?.ops[0];
  if (!record || root?.op !== "root") return undefined;
  const spaceId = cidFromDigest(record.space) as SpaceId;
  if (!isRootOf(spaceId, bytes)) return undefined;
  return { spaceId, header: root.header, aclRoot: { id: record.id, bytes } };
}
