import { ownSequence } from "../../acl/acl-service.ts";
import type { AclMerge } from "../../acl/log/acl-log.ts";
import { recordsFor } from "../../acl/reducer/audience.ts";
import { bytesToHex, concatBytes, utf8ToBytes } from "../../base/bytes.ts";
import { parseAccountId } from "../../crypto/account-id.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { Refusal } from "../../protocol/refusals.ts";
import { REPLICA_BOUNDS, type ReplicaAcl } from "../port/replica.ts";
import type { ReplicaSource } from "./source.ts";

const NOTHING_PENDING = new Uint8Array(32);

/** A space's ACL log as sync sees it. */
export function createReplicaAcl(space: ReplicaSource): ReplicaAcl {
  const { acl, aclService, store } = space;

  const waiting = store.memo(() => acl.pending.list());
  const hasWork = store.memo(aclService.hasWork);
  const pendingDigest = store.memo(() => {
    const ids = waiting().map(({ pending }) => pending.id);
    if (ids.length === 0) return NOTHING_PENDING;
    return sha256(concatBytes(utf8ToBytes("svc/acl-pending/v1\0"), ...ids.sort((a, b) => Buffer.compare(a, b))));
  });

  const sequencePending = async (): Promise<void> => {
    if (!hasWork()) return;
    await aclService.forgetDead();
    if (space.role() === "owner") await aclService.sequence();
  };

  return {
    head: () => acl.head().id,
    count: () => acl.records().length,
    hasPosition: (id) => acl.at(id) !== undefined,
    recordsFrom(from, before = Number.POSITIVE_INFINITY) {
      const upto = Math.max(from, Math.min(from + REPLICA_BOUNDS.aclRecords, before));
      return within(acl.records().slice(from, upto), ({ bytes }) => bytes);
    },
    idAt: (position) => acl.records()[position]?.id,
    recordsFor: (keyList) => recordsFor(acl.state, keyList),
    hasLeft(accountId) {
      const key = parseAccountId(accountId);
      return key !== undefined && acl.state.members.get(bytesToHex(key))?.history.at(-1)?.permission === "none";
    },
    pending: () => within(aclService.pending(), (bytes) => bytes),
    hasPending: () => waiting().length > 0,
    pendingDigest,
    unpublishedAt({ from, to }) {
      const standing = acl.records().slice(from, to === undefined ? undefined : to + 1);
      const lost =
        to === undefined ? acl.pending.list().flatMap(({ pending }) => (pending.kind === "acl" ? pending : [])) : [];
      return [...standing, ...lost].find(({ id }) => !store.sync.hasRecord("network", id))?.bytes;
    },

    permissionOf: acl.permission,
    mayRead(accountId) {
      const key = parseAccountId(accountId);
      return key !== undefined && acl.permission(key) !== "none";
    },
    guestKey: () => acl.state.guest?.key,

    take: async (records) => (records.length === 0 ? undefined : faultOf(await aclService.take(records))),
    async takeEach(records) {
      const faults = (await aclService.takeEach(records)).map(faultOf);
      return faults.find((fault) => fault !== undefined && fault.code !== "acl.gap");
    },
    async takePending(pending) {
      if (pending.length > 0) await aclService.takePending(pending);
      await sequencePending();
    },
    sequencePending,

    act: aclService.act,
    propose: aclService.propose,
    draft: aclService.draft,
    keepUnnotified: aclService.keepUnnotified,
    forgetUnnotified: aclService.forgetUnnotified,
    forgetUnnotifiedInVain: aclService.forgetUnnotifiedInVain,
    ownProposals: async () => (await aclService.ownProposals()).map(ownSequence),
  };
}

const faultOf = ({ kind, refusal }: AclMerge): Refusal | undefined =>
  kind === "gap" || kind === "refused" || kind === "split" ? refusal : undefined;

/** As many items as fit into one message, and at least one. */
function within<T>(items: readonly T[], bytesOf: (item: T) => Uint8Array): Uint8Array[] {
  const taken: Uint8Array[] = [];
  let size = 0;
  for (const item of items) {
    const bytes = bytesOf(item);
    size += bytes.length;
    if (size > REPLICA_BOUNDS.frameBytes && taken.length > 0) break;
    taken.push(bytes);
  }
  return taken;
}
