import { placesOf, presentKeyIdOf } from "../port/places.ts";
import type { Replica } from "../port/replica.ts";
import { claims } from "./claim.ts";
import { statusFacts } from "./facts.ts";
import { lostPlacesOf } from "./lost-places.ts";
import { comparisons } from "./own-vector.ts";
import { notes } from "./published.ts";
import { serving } from "./pull.ts";
import { createReplicaAcl } from "./replica-acl.ts";
import type { ReplicaSource } from "./source.ts";
import { taking } from "./take.ts";
import { wanting } from "./wanted.ts";

/** An open space as sync sees it, put together from what each file beside this one makes of it. */
export function openReplica(space: ReplicaSource): Replica {
  const { engine, store, keys } = space;
  const acl = createReplicaAcl(space);
  return {
    id: space.id,
    accountKey: space.accountKey,
    signer: space.signer,
    role: space.role,
    closing: engine.closing,
    acl,

    transportSecret: keys.transportSecret,
    places: (seed) => placesOf(space, seed),
    lostPlaces: () => lostPlacesOf(space),
    presentKeyId: () => presentKeyIdOf(space),
    readKey: keys.current,

    ...comparisons(space),
    ...serving(space),
    ...taking(space),
    ...wanting(space),
    ...claims(space, acl.pendingDigest),
    ...notes(space),
    newestNo: store.sync.newestNo,
    waitingBytes: () => store.parked.usage().bytes,
    ...statusFacts(space),
  };
}
