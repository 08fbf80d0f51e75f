import { placesOf, presentKeyIdOf } from "../places.ts";
import type { Replica } from "../replica.ts";
import { claimOf } from "./claim.ts";
import { factsOf, objectFactsOf, spaceBacklogOf } from "./facts.ts";
import { lostPlacesOf } from "./lost-places.ts";
import { claimedBeyond, coversAll, suspects, vectorOf } from "./own-vector.ts";
import { ageWaiting } from "./patience.ts";
import { createReplicaWrite, hasGivenUp, unpublishedOf } from "./published.ts";
import { changesNamed, pullFrame } from "./pull.ts";
import { createReplicaAcl } from "./replica-acl.ts";
import type { ReplicaSource } from "./source.ts";
import { takeIn } from "./take.ts";
import { awaitedStubs, chainsOf, lacksBodies, misses, wantedBehind } from "./wanted.ts";

/** An open space as sync sees it. */
export function openReplica(space: ReplicaSource): Replica {
  const { engine, keys } = space;
  const { store } = engine;
  const acl = createReplicaAcl(space);
  const replicaWrite = createReplicaWrite(space);
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

    vector: () => vectorOf(space),
    isCoveredBy: (theirs) => coversAll(space, theirs),
    claimedBeyond: (theirs) => claimedBeyond(space, theirs),
    suspects: (theirs) => suspects(space, theirs),
    chainsOf: (writers, limit) => chainsOf(space, writers, limit),

    pull: (request) => pullFrame(space, request),
    changesNamed: (ids) => changesNamed(space.engine, ids),

    take: (changes) => takeIn(space, changes),
    held: (limit) => [...store.parked.ids(limit / 2), ...store.parked.quarantinedIds(limit / 2)],
    wanted: (after, limit) => wantedBehind(space, after, limit),
    awaitedStubs: (limit) => awaitedStubs(space, limit),
    lacksBodies: () => lacksBodies(space),
    misses: (left) => misses(space, left),
    age: () => ageWaiting(space),
    replaceWriter: async () => void (await engine.mintWriter()),

    claimOf: (state) => claimOf(space, acl.pendingDigest(), state),
    unpublished: (limit) => unpublishedOf(space, limit),
    newestNo: store.sync.newestNo,
    waitingBytes: () => store.parked.usage().bytes,
    hasGivenUp: () => hasGivenUp(space),

    facts: () => factsOf(space),
    objectFacts: (objectId) => objectFactsOf(space, objectId),
    backlog: () => spaceBacklogOf(space),

    note: store.meta,
    placeNote: store.places.note,
    notedPlaces: store.places.ids,
    write: (run) => engine.write(() => run(replicaWrite)),
  };
}
