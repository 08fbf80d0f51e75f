import type { AclBuild, AclMade, ComposeOptions } from "../acl/compose.ts";
import { ACL_BOUNDS } from "../acl/op.ts";
import type { Permission } from "../acl/permission.ts";
import type { AccountId, SpaceId } from "../base/ids.ts";
import type { Signer } from "../crypto/sign.ts";
import type { Refusal } from "../protocol/refusals.ts";
import type { SpaceDebug } from "../protocol/sync.ts";
import type { Place } from "./places.ts";
import type { OwnState, OwnVector, WriterRange, WriterState } from "./version-vector.ts";

export { changeIdOf, isStub } from "../change/codec/change-stub.ts";
export type { AclBuild, AclMade, ComposeOptions };

/** How long an ACL record is at most. */
export const ACL_RECORD_BYTES: number = ACL_BOUNDS.recordBytes;

/** What a replica gives at once at most, so that neither side has to hold much. */
export const REPLICA_BOUNDS = {
  frameBytes: 1 << 20,
  frameChanges: 500,
  /** Rows looked at for one frame. */
  scanned: 50_000,
  aclRecords: 500,
} as const;

/**
 * After so many rounds without its parent or its ACL record a change is set aside, and so is a body that is missing:
 * nobody who was asked has it. It is taken in all the same should it come.
 */
export const PATIENCE_ROUNDS = 5;

/** What another replica has, to be given what it lacks. */
export interface Pull {
  readonly vector: readonly WriterState[];
  /** What writers this is about: all without it. */
  readonly range?: WriterRange;
  /** Where the last frame ended; 0 at the beginning. */
  readonly cursor: number;
  /** All that it has of writers whose chains differ. */
  readonly chains: readonly WriterChain[];
  /** Received before, but not stored: parked or refused for good. */
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
  /** Left out of this frame because they are held already. */
  readonly withheld: number;
  /** Writers of whose chains the ids are needed: both fields of each, joined. */
  readonly needIds: readonly Uint8Array[];
}

/** What came of a batch of changes of others. Each was judged alone: a bad one holds up none of its neighbours. */
export interface Taken {
  readonly ids: readonly Uint8Array[];
  /** Whether whoever gave the change is thereby known to keep it: a stub is enough where no more is kept here. */
  readonly kept: readonly boolean[];
  /** Whether the change is parked. */
  readonly isParked: readonly boolean[];
  /** Stored: roots of objects that were not here, and other changes. */
  readonly fresh: number;
  readonly changed: number;
  readonly parked: number;
  readonly quarantined: number;
  /** A quota is used up: they have to be offered again. */
  readonly refused: number;
  /** How many of those are, whoever wrote them, for want of room in the space's quota. */
  readonly crowded: number;
  /** The same of those who never were members: nobody misses them. */
  readonly strange: number;
  /** Why the first of those that are quarantined or refused is. */
  readonly refusal: Refusal | undefined;
  /** Changes under this device's own writer that it did not write: the device was copied, or put back to an older state. */
  readonly foreignOwn: boolean;
}

/** What another replica says of itself, as far as it tells what it keeps. */
export interface RemoteState {
  readonly aclHead: Uint8Array;
  /** Of what waits for the space's owner there. */
  readonly pending: Uint8Array;
  /** A hash of which changes in the vector it has as stubs although they are not deleted; zero where it lacks no body. */
  readonly lacks: Uint8Array;
  readonly vector: readonly WriterState[];
}

/**
 * What another replica says it keeps and nobody but this device was known to. Its word alone is not enough to call anything
 * synced: what is named here is asked back first.
 */
export interface Claim {
  /** Some of the changes: all of a few, of many a few at random, the newest among them. */
  readonly changeIds: readonly Uint8Array[];
  /** Records of the ACL log that follow each other, the first of them at `from`. */
  readonly from: number;
  readonly records: readonly Uint8Array[];
  readonly pending: readonly Uint8Array[];
  /** It was given back: all that was claimed counts as kept. Durable when it resolves. */
  accept(): Promise<void>;
}

/** A change that the network is not known to keep. */
export interface Unpublished {
  /** In the order of arrival. */
  readonly no: number;
  /** This device's own, or nobody's: others did not publish it. */
  readonly isOwn: boolean;
  /** Nobody's: everybody computes it. */
  readonly isNobodys: boolean;
  readonly bytes: Uint8Array;
}

/** What a space's database says for its status. It stands until something happens to the space, open or not. */
export interface SpaceFacts {
  /** Nothing is kept here alone, or waits to be judged or read. */
  readonly complete: boolean;
  /** Objects, and those of them with something unconfirmed or unjudged. */
  readonly total: number;
  readonly waiting: number;
  /** Objects wait to be folded anew, which nobody hears of. */
  readonly stale: boolean;
}

/** The same of one object, and what of it is shown to whoever looks closely. */
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

/** What of a space's debug output its database says. */
export interface SpaceBacklog
  extends Pick<SpaceDebug, "parked" | "unconfirmed" | "unconfirmedRights" | "alarms" | "cut" | "proposals"> {
  /** Changes that will never count. */
  readonly quarantined: readonly { readonly id: string; readonly refusal: Refusal }[];
}

/** The ACL log of a replica, and what waits for the owner to take its place in it. */
export interface ReplicaAcl {
  readonly head: () => Uint8Array;
  readonly count: () => number;
  /** Whether a record is here and has its place. */
  isPlaced(id: Uint8Array): boolean;
  /** Records of the log from a position on and before another, as many as go into one message. */
  recordsFrom(from: number, before?: number): Uint8Array[];
  /** What waits for the space's owner, as much as goes into one message. */
  pending(): Uint8Array[];
  hasPending(): boolean;
  /** Tells apart what waits for the owner here from what waits elsewhere; zeros when nothing does. */
  pendingDigest(): Uint8Array;
  /**
   * The next record that a place on the network is not known to keep: of what stands there of the log, and of the present
   * place then of branches that lost.
   */
  unpublishedAt(place: Place): Uint8Array | undefined;
  /** The id of the record at a position. */
  idAt(position: number): Uint8Array | undefined;
  /** How many records of the log are for whoever holds these keys. */
  recordsFor(keys: readonly Uint8Array[]): number;
  /** Whether an account was a member, and is none. */
  hasLeft(accountId: AccountId): boolean;

  permissionOf(account: Uint8Array): Permission;
  /** Whether an account may have the space's content. */
  mayRead(accountId: AccountId): boolean;
  /** The key that the space's guests read by. */
  guestKey(): Uint8Array | undefined;

  /**
   * Takes in records that another replica has, each judged as one's own are. Answers why they could not be, or undefined;
   * `acl.gap` when what they follow is not here.
   */
  take(records: readonly Uint8Array[]): Promise<Refusal | undefined>;
  /**
   * Takes in records of a log that anybody may write to, each judged by itself. Answers why the first of those could not be
   * that were refused; what follows nothing that is here is passed over.
   */
  takeEach(records: readonly Uint8Array[]): Promise<Refusal | undefined>;
  /** Keeps what others propose; an owner's device then gives effect to what waits. */
  takePending(pending: readonly Uint8Array[]): Promise<void>;
  /**
   * Forgets what waits for the owner in vain, and on an owner's device gives effect to what waits. To be called when records
   * or changes have come.
   */
  sequencePending(): Promise<void>;

  /** As the ACL service has them. */
  act(build: AclBuild, options?: ComposeOptions): Promise<AclMade | undefined>;
  propose(build: AclBuild): Promise<AclMade | undefined>;
  draft(build: AclBuild, options?: ComposeOptions): AclMade | undefined;
  /** How this account gives effect itself to what it proposed, oldest first. */
  ownProposals(): Promise<AclBuild[]>;
  keepUntold(made: AclMade): Promise<void>;
  forgetUntold(made: AclMade): Promise<void>;
  forgetUntoldInVain(): Promise<void>;
}

/** What sync writes with a space: durable together when the write resolves. */
export interface ReplicaWrite {
  putNote(name: string, value: Uint8Array): void;
  dropNote(name: string): void;
  /** What is noted of the place of an epoch, by the id of its read key. */
  putPlaceNote(keyId: Uint8Array, note: Uint8Array): void;
  dropPlaceNote(keyId: Uint8Array): void;
  /** The network gave these: it keeps them. */
  published(taken: Taken): void;
  /** The network does not keep these changes after all, as far as they are here. */
  unpublished(changes: readonly Uint8Array[]): void;
  /** The network turned out to be another one, or an older copy: nothing is known to be there. */
  forgetPublished(): void;
  /** ACL records were met on the network. */
  recordsPublished(ids: readonly Uint8Array[]): void;
  /**
   * The network's ACL log is not the one that was read: nothing is known to be there. An alarm is raised if records of the
   * log had been met there: whoever comes anew is shown an older log, or another one. `quietly`: they are only met once more.
   */
  forgetRecordsPublished(options?: { readonly quietly: boolean }): void;
  /** Bodies that were given up are looked for anew. */
  forgetGivenUp(): void;
}

/** The place of an epoch that began on a branch of the log that lost. */
export interface LostPlace {
  readonly secret: Uint8Array;
  /** The log from where the two parted, to the record that begins its next epoch. */
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
  /** Whether it is closed, or about to be: whoever works with it over several turns has to stop. */
  closing(): boolean;
  readonly acl: ReplicaAcl;

  /** The secret of its present place on the network, while the read key is here. */
  transportSecret(): Uint8Array | undefined;
  /** Its places on the network, oldest first. `seed`: of the token by which it is joined. */
  places(seed?: Uint8Array): Place[];
  /** Those of branches that lost, as far as their keys were given to this account. */
  lostPlaces(): LostPlace[];
  /** Hex of the id of the present read key, which may not be here. */
  presentKeyId(): string;
  /** The present read key. */
  readKey(): { readonly id: Uint8Array; readonly key: Uint8Array } | undefined;

  /** Everything stored, in brief. Computed once for as long as nothing changes. */
  vector(): OwnVector;
  /** Whether a replica with this vector has everything that is here. */
  isCoveredBy(theirs: readonly WriterState[]): boolean;
  /** How many changes a replica with this vector claims to have that are not here. */
  claimedBeyond(theirs: readonly WriterState[]): number;
  /** Writers of whose chains the two must compare ids, because one of them, as far as we can tell, forked. */
  suspects(theirs: readonly WriterState[]): readonly OwnState[];
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
  /** Parents that parked changes wait for and changes without their bodies, in the order of their ids behind `after`. */
  wanted(after: Uint8Array, limit: number): Uint8Array[];
  /** Stubs of types by whose definitions changes wait, a list a type: of one that was deleted nobody missed the body. */
  awaitedStubs(limit: number): Uint8Array[][];
  /** Whether bodies are missing that may yet come. */
  lacksBodies(): boolean;
  /**
   * Whether what had no room is missed. What used up its author's own quota is so no more once all that waits does so in
   * vain: nobody who was asked has what it waits for.
   */
  misses(left: Pick<Taken, "refused" | "crowded">): boolean;
  /** A round with somebody has passed: what waits grows older. */
  age(): Promise<void>;
  /** Another device was found to use this one's writer: it goes on under a fresh one. */
  replaceWriter(): Promise<void>;

  /** What a remote in this state claims to keep that is news; undefined when nothing is, and while it lacks bodies that are here. */
  claimOf(state: RemoteState): Claim | undefined;
  /** Changes that the network is not known to keep, in the order of arrival. */
  unpublished(limit: number): Unpublished[];
  newestNo(): number;
  /** How many bytes wait for what they need. */
  waitingBytes(): number;
  /** Whether the bodies of changes were given up that turned out to be needed. */
  hasGivenUp(): boolean;

  facts(): SpaceFacts;
  /** Undefined for an object that is not here, or deleted. */
  objectFacts(objectId: string): ObjectFacts | undefined;
  backlog(): SpaceBacklog;

  note(name: string): Uint8Array | undefined;
  placeNote(keyId: Uint8Array): Uint8Array | undefined;
  /** Ids of the read keys of all places of which something is noted. */
  notedPlaces(): Uint8Array[];
  write(run: (write: ReplicaWrite) => void): Promise<void>;
}
