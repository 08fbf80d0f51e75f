import type { AclBuild, AclMade, ComposeOptions } from "../../acl/compose/compose.ts";
import { ACL_BOUNDS } from "../../acl/record/op.ts";
import type { Permission } from "../../acl/record/permission.ts";
import type { AccountId, SpaceId } from "../../base/ids.ts";
import type { Signer } from "../../crypto/sign.ts";
import type { Refusal } from "../../protocol/refusals.ts";
import type { SpaceDebug } from "../../protocol/sync.ts";
import type { Place } from "./places.ts";
import type { KeyedState, OwnVector, TheirVector, WriterState } from "./version-vector.ts";

export { changeIdOf, isStub } from "../../change/codec/change-stub.ts";
export type { AclBuild, AclMade, ComposeOptions };

/** How long an ACL record is at most. */
export const ACL_RECORD_BYTES: number = ACL_BOUNDS.recordBytes;

/** The most that a replica gives at once, so that neither side has to hold much. */
export const REPLICA_BOUNDS = {
  frameBytes: 1 << 20,
  frameChanges: 500,
  /** Most rows that are looked at for one frame. */
  scanned: 50_000,
  aclRecords: 500,
} as const;

/**
 * After so many rounds without its parent or its ACL record a change is set aside; so is a missing body. Nobody who was
 * asked has what it waits for. It is still taken in if that comes later.
 */
export const PATIENCE_ROUNDS = 5;

/** What another replica has, so that it can be given what it lacks. */
export interface Pull {
  readonly vector: readonly WriterState[];
  /** Whether this is about the writers of `vector` alone; one that it lacks wholly stands there with nothing. */
  readonly only?: boolean;
  /** Where the last frame ended; 0 at the beginning. */
  readonly cursor: number;
  /** All ids that it has of writers whose chains differ from ours. */
  readonly chains: readonly WriterChain[];
  /** Changes that it received but did not store: they are parked, or refused for good. */
  readonly held: readonly Uint8Array[];
}

/** Ids of a writer's changes, newest first. */
export interface WriterChain {
  readonly author: Uint8Array;
  readonly writer: Uint8Array;
  readonly ids: readonly Uint8Array[];
}

/** One frame of what another replica lacks. */
export interface PulledFrame {
  readonly changes: readonly Uint8Array[];
  /** 0: nothing is left. */
  readonly next: number;
  /** Changes left out of this frame because the other holds them already. */
  readonly withheld: number;
  /** Writers whose ids are needed before anything can be given: both fields of each, joined. */
  readonly needIds: readonly Uint8Array[];
}

/** What came of a batch of changes of others. Each change is judged alone, so a bad one does not hold up the others. */
export interface Taken {
  readonly ids: readonly Uint8Array[];
  /** Whether the giver is thereby known to keep the change. A stub is enough where a stub is all that is kept here. */
  readonly kept: readonly boolean[];
  /** Whether the change is parked. */
  readonly isParked: readonly boolean[];
  /** Stored: roots of objects that were not here, and other changes. */
  readonly fresh: number;
  readonly changed: number;
  readonly parked: number;
  readonly quarantined: number;
  /** A quota is used up: these have to be offered again. */
  readonly refused: number;
  /** How many of those were refused because the space's quota had no room, whoever wrote them. */
  readonly crowded: number;
  /** The same, of authors who never were members; nobody misses these. */
  readonly strange: number;
  /** Why the first of the quarantined or refused changes was not taken. */
  readonly refusal: Refusal | undefined;
  /** Changes under this device's own writer that it did not write: the device was copied, or put back to an older state. */
  readonly foreignOwn: boolean;
}

/** What another replica says of itself, as far as this tells what it keeps. */
export interface RemoteState {
  readonly aclHead: Uint8Array;
  /** Digest of the pending records there. */
  readonly pending: Uint8Array;
  /** A hash of the changes that it has only as stubs although they are not deleted; zeros if it lacks no body. */
  readonly lacks: Uint8Array;
  readonly vector: TheirVector;
}

/**
 * What another replica says it keeps, of what only this device was known to keep. Its word alone does not make anything
 * synced: what is named here is asked back first.
 */
export interface Claim {
  /** Whether it may claim to keep more, which is seen once this is accepted. */
  readonly isPart: boolean;
  /** Some of the changes: all of a few; of many a few at random, the newest among them. */
  readonly changeIds: readonly Uint8Array[];
  /** Consecutive records of the ACL log, the first of them at `from`. */
  readonly from: number;
  readonly records: readonly Uint8Array[];
  readonly pending: readonly Uint8Array[];
  /** Called once the other has given it back: all that was claimed then counts as kept. Durable when it resolves. */
  accept(): Promise<void>;
}

/** A change that the network is not known to keep. */
export interface Unpublished {
  /** In the order of arrival. */
  readonly no: number;
  /** Written by this device, or by nobody; no other device publishes it. */
  readonly isOwn: boolean;
  /** Written by nobody: every device computes it. */
  readonly isNobodys: boolean;
  readonly bytes: Uint8Array;
}

/**
 * What a space's database says for its status. It holds until something happens to the space, whether that is open or not.
 */
export interface SpaceFacts {
  /** Nothing is kept only here, and nothing waits to be judged or read. */
  readonly complete: boolean;
  /** How many objects there are, and how many of them have something unconfirmed or unjudged. */
  readonly total: number;
  readonly waiting: number;
  /** Objects wait to be folded anew. No event reports when they are done. */
  readonly stale: boolean;
}

/** The same for one object, with what is shown to people who look closely. */
export interface ObjectFacts {
  readonly objectId: string;
  readonly complete: boolean;
  /** Changes that only this device is known to have. */
  readonly keptNowhereElse: number;
  readonly heads: readonly string[];
  readonly changes: number;
  readonly newestNo: number;
  readonly latestVersionId: string;
}

/** The part of a space's debug output that its database says. */
export interface SpaceBacklog
  extends Pick<SpaceDebug, "parked" | "unconfirmed" | "unconfirmedRights" | "alarms" | "cut" | "proposals"> {
  /** Changes that will never count. */
  readonly quarantined: readonly { readonly id: string; readonly refusal: Refusal }[];
}

/** The ACL log of a replica, and the pending records, which wait for the owner to give them a position in it. */
export interface ReplicaAcl {
  readonly head: () => Uint8Array;
  readonly count: () => number;
  /** Whether a record is here and has its position. */
  hasPosition(id: Uint8Array): boolean;
  /** Records of the log from one position up to another, as many as fit into one message. */
  recordsFrom(from: number, before?: number): Uint8Array[];
  /** The pending records, as many as fit into one message. */
  pending(): Uint8Array[];
  hasPending(): boolean;
  /** Differs when other records are pending here than elsewhere; zeros when none is. */
  pendingDigest(): Uint8Array;
  /**
   * The next record that a place on the network is not known to keep: of the log's records in that place, and in the
   * present place also of branches that lost.
   */
  unpublishedAt(place: Place): Uint8Array | undefined;
  /** The id of the record at a position. */
  idAt(position: number): Uint8Array | undefined;
  /** How many records of the log the holders of these keys may have. */
  recordsFor(keys: readonly Uint8Array[]): number;
  /** Whether an account was a member and no longer is. */
  hasLeft(accountId: AccountId): boolean;

  permissionOf(account: Uint8Array): Permission;
  /** Whether an account may have the space's content. */
  mayRead(accountId: AccountId): boolean;
  /** The key that the space's guests read by. */
  guestKey(): Uint8Array | undefined;

  /**
   * Takes in records of another replica, each judged like a record of one's own. Answers why they could not be taken in, or
   * undefined; `acl.gap` if what they follow is not here.
   */
  take(records: readonly Uint8Array[]): Promise<Refusal | undefined>;
  /**
   * Takes in records of a log that anybody may write to, each judged by itself. Answers why the first refused record was
   * refused. Records that follow nothing that is here are passed over.
   */
  takeEach(records: readonly Uint8Array[]): Promise<Refusal | undefined>;
  /** Keeps what others propose; an owner's device then gives effect to pending records. */
  takePending(pending: readonly Uint8Array[]): Promise<void>;
  /**
   * Forgets the pending records that wait in vain, and on an owner's device gives effect to the others. To be called when
   * records or changes have come.
   */
  sequencePending(): Promise<void>;

  /** These are the ACL service's own functions. */
  act(build: AclBuild, options?: ComposeOptions): Promise<AclMade | undefined>;
  propose(build: AclBuild): Promise<AclMade | undefined>;
  draft(build: AclBuild, options?: ComposeOptions): AclMade | undefined;
  /** How this account itself gives effect to what it proposed, oldest first. */
  ownProposals(): Promise<AclBuild[]>;
  keepUnnotified(made: AclMade): Promise<void>;
  forgetUnnotified(made: AclMade): Promise<void>;
  forgetUnnotifiedInVain(): Promise<void>;
}

/** What sync writes with a space: durable together when the write resolves. */
export interface ReplicaWrite {
  putNote(name: string, value: Uint8Array): void;
  dropNote(name: string): void;
  /** What is noted of the place of an epoch, by the id of its read key. */
  putPlaceNote(keyId: Uint8Array, note: Uint8Array): void;
  dropPlaceNote(keyId: Uint8Array): void;
  /** The network gave these changes, so it keeps them. */
  published(taken: Taken): void;
  /** The network does not keep these changes after all. Those of them that are here are marked so. */
  unpublished(changes: readonly Uint8Array[]): void;
  /** The network turned out to be a different one, or an older copy: nothing is known to be there. */
  forgetPublished(): void;
  /** ACL records were met on the network. */
  recordsPublished(ids: readonly Uint8Array[]): void;
  /**
   * The network's ACL log is not the one that was read before: nothing is known to be there. If records of the log had been
   * met there an alarm is raised, since anybody who comes now is shown an older log or a different one. `quietly` raises
   * none: the records are only met once more.
   */
  forgetRecordsPublished(options?: { readonly quietly: boolean }): void;
  /** Bodies that were given up are looked for again. */
  forgetGivenUp(): void;
}

/** The place of an epoch that began on a branch of the log that lost. */
export interface LostPlace {
  readonly secret: Uint8Array;
  /** The log from the record where the two branches parted to the record that begins its next epoch. */
  readonly records: readonly Uint8Array[];
}

/** A space as sync sees it: what is here, what comes in, what others keep, and what sync notes for itself. */
export interface Replica {
  readonly id: SpaceId;
  /** Public key of the account that opened it: one's own, or the guest key's. */
  readonly accountKey: Uint8Array;
  /** Signs as that account. */
  readonly signer: Signer;
  /** This account's permission now. */
  role(): Permission;
  /** Whether it is closed, or about to be: work that takes several turns has to stop then. */
  closing(): boolean;
  readonly acl: ReplicaAcl;

  /** The secret of its present place on the network, while the read key is here. */
  transportSecret(): Uint8Array | undefined;
  /** Its places on the network, oldest first. `seed`: of the token by which it is joined. */
  places(seed?: Uint8Array): Place[];
  /** The places of branches that lost, as far as their keys were given to this account. */
  lostPlaces(): LostPlace[];
  /** Hex of the id of the present read key. The key itself may not be here. */
  presentKeyId(): string;
  /** The present read key. */
  readKey(): { readonly id: Uint8Array; readonly key: Uint8Array } | undefined;

  /** Everything stored, in brief. Computed once for as long as nothing changes. */
  vector(): OwnVector;
  /** Whether a replica with this vector has everything that is here. */
  isCoveredBy(theirs: TheirVector): boolean;
  /** How many changes a replica with this vector claims to have that are not here. */
  claimedBeyond(theirs: TheirVector): number;
  /** Writers of whose chains the two replicas must compare ids, because one of them has forked as far as we can tell. */
  suspects(theirs: TheirVector): readonly KeyedState[];
  /** What is here of these writers, at most so many ids of each. */
  chainsOf(writers: readonly Pick<WriterState, "author" | "writer">[], limit: number): WriterChain[];

  /** One frame of what another replica lacks, in our order of arrival. */
  pull(request: Pull): PulledFrame;
  /** Changes asked for by name, as many as fit into a frame. */
  changesNamed(ids: readonly Uint8Array[]): Uint8Array[];

  /** Stores and folds changes of other replicas; durable when it resolves. */
  take(changes: readonly Uint8Array[]): Promise<Taken>;
  /** Ids of changes received but not stored, at most so many. */
  held(limit: number): Uint8Array[];
  /** Parents that parked changes wait for, and changes without their bodies, in the order of their ids after `after`. */
  wanted(after: Uint8Array, limit: number): Uint8Array[];
  /**
   * Stubs of the types by whose definitions changes wait, one list a type. Nobody missed the bodies of a type that was
   * deleted.
   */
  awaitedStubs(limit: number): Uint8Array[][];
  /** Whether bodies are missing that may still come. */
  lacksBodies(): boolean;
  /**
   * Whether changes that had no room are missed. Changes that used up their own author's quota are not, once everything
   * that waits does so in vain: nobody who was asked has what it waits for.
   */
  misses(left: Pick<Taken, "refused" | "crowded">): boolean;
  /** A round with somebody has ended: what waits has waited one round longer. */
  age(): Promise<void>;
  /** Another device was found to use this device's writer: this device continues under a new one. */
  replaceWriter(): Promise<void>;

  /** What a remote in this state claims to keep that is news; undefined when nothing is, and while it lacks bodies that are here. */
  claimOf(state: RemoteState): Claim | undefined;
  /** Changes that the network is not known to keep, in the order of arrival. */
  unpublished(limit: number): Unpublished[];
  newestNo(): number;
  /** How many bytes wait for what they need. */
  waitingBytes(): number;
  /** Whether bodies were given up that turned out to be needed. */
  hasGivenUp(): boolean;

  facts(): SpaceFacts;
  /** Undefined for an object that is not here, or deleted. */
  objectFacts(objectId: string): ObjectFacts | undefined;
  backlog(): SpaceBacklog;

  note(name: string): Uint8Array | undefined;
  placeNote(keyId: Uint8Array): Uint8Array | undefined;
  /** Ids of the read keys of all places that something is noted of. */
  notedPlaces(): Uint8Array[];
  write(run: (write: ReplicaWrite) => void): Promise<void>;
}
