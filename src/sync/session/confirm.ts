import { equalBytes } from "../../base/bytes.ts";
import type { Space } from "../../space/space.ts";
import { pendingDigest } from "../acl-exchange.ts";
import { askState } from "./fetch.ts";
import { SessionFault, type SpaceState } from "./messages.ts";
import { givesBack, givesBackRights } from "./proof.ts";
import type { RemoteReplica } from "./remote-replica.ts";
import { coverage, hasOurBodies } from "./vector.ts";

/** What of the ACL a peer says it has, and nobody on the LAN was known to have. */
function aclToConfirm(space: Space, state: SpaceState) {
  const { store } = space.engine;
  const isNew = ({ id }: { readonly id: Uint8Array }): boolean => !store.sync.hasRecord("peer", id);
  const log = store.aclRecords();
  // Whoever has a record of the log has those before it.
  const theirs = log.slice(0, log.findIndex(({ id }) => equalBytes(id, state.aclHead)) + 1);
  const from = theirs.findIndex(isNew);
  const samePending = equalBytes(state.units, pendingDigest(space));
  const units = samePending ? space.acl.units.list().flatMap(({ unit }) => (isNew(unit) ? [unit] : [])) : [];
  return { from, records: from < 0 ? [] : theirs.slice(from), units };
}

/**
 * Counts what the remote keeps as kept, once it has given back some of it. Answers false when it turned out not to hold the
 * space any more. Throws a SessionFault for one that does not give back what it claims to have.
 */
export async function confirm(remote: RemoteReplica, space: Space, state: SpaceState): Promise<boolean> {
  if (!state.content || !hasOurBodies(space, state)) return true;
  const { sync } = space.engine.store;
  const upto = sync.reachOf("peer", coverage(space, state.vector));
  const acl = aclToConfirm(space, state);
  const given =
    (await givesBack(remote, space, sync.markOf("peer"), upto)) &&
    (await givesBackRights(remote, space, {
      from: acl.from,
      records: acl.records.map(({ bytes }) => bytes),
      units: acl.units.map(({ bytes }) => bytes),
    }));
  if (!given) {
    // The space may have ended there, or its content for us, between two answers.
    const now = await askState(remote, space);
    if (now.known && now.content) throw new SessionFault("the peer does not give back what it claims to have");
    return now.known;
  }
  await space.engine.write(() => {
    sync.advance("peer", upto);
    for (const { id } of [...acl.records, ...acl.units]) sync.noteRecord("peer", id);
  });
  return true;
}
