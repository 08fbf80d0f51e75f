import { bytesToHex } from "../../base/bytes.ts";
import type { AccountId } from "../../base/ids.ts";
import { accountIdOf } from "../../crypto/account-id.ts";
import { cidFromDigest } from "../../crypto/cid.ts";
import type { CutChanges } from "../../protocol/sync.ts";
import type { ReplicaSource } from "./source.ts";

const SHOWN = 50;

type CutSource = Pick<ReplicaSource, "engine" | "store" | "acl" | "accountKey">;

/**
 * Changes of members that do not count because a record took away the right to write before anybody had seen them. They are
 * kept, and shown nowhere else. Accounts that lost nothing are left out.
 */
export function cutChangesOf(space: CutSource): CutChanges[] {
  const { changes } = space.store;
  const writersByAuthor = Map.groupBy(changes.writers(), ({ author }) => bytesToHex(author));
  return [...space.acl.state.revocations.keys()].flatMap((name) => {
    const account = space.acl.state.members.get(name)?.account;
    const writers = writersByAuthor.get(name) ?? [];
    const count = writers.reduce((sum, { no }) => sum + changes.countUncounted(no), 0);
    if (!account || count === 0) return [];
    const identity: AccountId = accountIdOf(account);
    const newest = writers.flatMap(({ no }) => changes.uncountedOfWriter(no, SHOWN)).slice(0, SHOWN);
    return {
      identity,
      self: bytesToHex(space.accountKey) === name,
      count,
      changes: newest.map(({ id, objectNo }) => ({
        id: cidFromDigest(id),
        objectId: space.engine.objects.byNo(objectNo)?.idText ?? "",
      })),
    };
  });
}

/** How many of this account's own changes do not count. */
export function ownCutCount(space: CutSource): number {
  const own = bytesToHex(space.accountKey);
  if (!space.acl.state.revocations.has(own)) return 0;
  const { changes } = space.store;
  const writers = changes.writers().filter(({ author }) => bytesToHex(author) === own);
  return writers.reduce((sum, { no }) => sum + changes.countUncounted(no), 0);
}
