import { bytesToHex, concatBytes, equalBytes, utf8ToBytes } from "../../base/bytes.ts";
import { encodeCbor } from "../../base/dag-cbor.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { ChainSize } from "../../store/tables/sync-table.ts";
import type { Replica } from "../port/replica.ts";
import {
  entriesOf,
  isForked,
  type KeyedState,
  LACKS_NOTHING,
  type OwnVector,
  sameState,
  stateIn,
  type TheirVector,
  type VectorPart,
  writerKey,
} from "../port/version-vector.ts";
import { mergedParts, partsOf } from "./vector-parts.ts";

/** What is here of a writer, with its number in the store. */
export interface StoredState extends KeyedState {
  readonly no: number;
}

export type StoredVector = OwnVector<StoredState>;
type Parts = readonly VectorPart<StoredState>[];

const NOTHING = new Uint8Array(0);
/** Up to so many missing bodies are named in the hash; beyond that it says how many there are. */
const LACKS_SHOWN = 4096;

/** What a vector is computed from: the parts of a space that matter here. */
export interface VectorSource {
  readonly store: SpaceStore;
  readonly acl: { head(): { readonly id: Uint8Array } };
}

/** The part of a replica that compares the chains here with those of others. */
export const comparisons = (
  source: VectorSource,
): Pick<Replica, "vector" | "isCoveredBy" | "claimedBeyond" | "suspects"> => ({
  vector: source.store.memo(() => vectorOf(source)),
  isCoveredBy: (theirs) => coversAll(source, theirs),
  claimedBeyond: (theirs) => claimedBeyond(source, theirs),
  suspects: (theirs) => suspects(source, theirs),
});

/** A vector, and what it is of. */
interface KnownVector extends StoredVector {
  readonly newestNo: number;
  readonly revision: number;
  readonly rewrites: number;
  readonly aclHead: string;
  readonly waiting: string;
}

/**
 * An entry as it is held: a member may have hundreds of thousands of writers, and an array takes a hundred bytes besides its
 * own, so what is seldom asked for is made when it is.
 */
class Chain implements StoredState {
  readonly no: number;
  readonly key: string;
  readonly seq: number;
  readonly count: number;
  readonly forks: Uint8Array;
  readonly last: Uint8Array;

  constructor({ writer, author, id, seq, count }: ChainSize, last: Uint8Array, forks: Uint8Array) {
    this.no = writer;
    this.key = writerKey(author, id);
    this.seq = seq;
    this.count = count;
    this.forks = forks;
    this.last = last;
  }

  get author(): Uint8Array {
    return Uint8Array.fromHex(this.key.slice(0, 2 * AUTHOR_BYTES));
  }
  get writer(): Uint8Array {
    return Uint8Array.fromHex(this.key.slice(2 * AUTHOR_BYTES));
  }
}

const AUTHOR_BYTES = 32;
/** Of so many changes that came it is looked whose they are; of more the vector is computed anew. */
const PATCHED_CHANGES = 20_000;

const cached = new WeakMap<SpaceStore, KnownVector>();

/**
 * Everything stored, in brief. While the ACL log stays as it is and the same writers wait for a place in it, and no change
 * came to count or ceased to, what is added touches its writers alone.
 */
export function vectorOf(source: VectorSource): StoredVector {
  const { store } = source;
  const newestNo = store.sync.newestNo();
  const revision = store.pendingBodies.revision();
  const aclHead = bytesToHex(source.acl.head().id);
  const known = cached.get(store);
  const waiting = store.sync.writersAwaitingPosition().join();
  const rewrites = store.changes.rewrites();
  const isOfSame = known?.aclHead === aclHead && known.waiting === waiting;
  const isSame = isOfSame && known.newestNo === newestNo;
  if (isSame && known.revision === revision) return known;
  const lacks = lackingIn(store);
  const parts = isSame
    ? known.parts
    : ((isOfSame && known.rewrites === rewrites ? patched(store, known) : undefined) ?? partsOf(chainsOf(store)));
  const writers = parts.reduce((sum, { states }) => sum + states.length, 0);
  const fresh = {
    newestNo,
    revision,
    rewrites,
    aclHead,
    waiting,
    parts,
    writers,
    lacks,
    digest: digestOf(parts, lacks),
  };
  // What is in a transaction may be taken back, and its numbers given to others.
  if (!store.db.inTransaction) cached.set(store, fresh);
  return fresh;
}

const byKey = (a: StoredState, b: StoredState): number => (a.key < b.key ? -1 : 1);

const chainsOf = (store: SpaceStore): StoredState[] =>
  store.sync
    .chains()
    .map((chain) => stateOf(store, chain))
    .sort(byKey);

/** The vector with what came since; undefined when that is much. */
function patched(store: SpaceStore, { parts, newestNo }: KnownVector): Parts | undefined {
  if (store.sync.newestNo() < newestNo || store.sync.newestNo() - newestNo > PATCHED_CHANGES) return undefined;
  const fresh: StoredState[] = [];
  for (const writer of store.sync.writersAfter(newestNo, PATCHED_CHANGES)) {
    const chain = store.sync.chainOf(writer);
    if (chain) fresh.push(stateOf(store, chain)); // of nobody's, and strangers', none is in any vector before or after
  }
  return mergedParts(parts, fresh.sort(byKey));
}

function stateOf(store: SpaceStore, chain: ChainSize): StoredState {
  const { writer, seq, count, last } = chain;
  return count > seq
    ? new Chain(chain, lowestAt(store, writer, seq)!, sha256(concatBytes(...store.sync.forkedIds(writer))))
    : new Chain(chain, last, NOTHING);
}

function lackingIn({ pendingBodies }: SpaceStore): Uint8Array {
  const ids = pendingBodies.missingBodies(LACKS_SHOWN);
  if (ids.length === 0) return LACKS_NOTHING;
  const count = ids.length < LACKS_SHOWN ? ids.length : pendingBodies.countBodies();
  return sha256(concatBytes(utf8ToBytes("svc/lacks/v1\0"), encodeCbor(count), ...ids));
}

/** Whether a replica that lacks these bodies has all that are here: it lacks none, or the same. */
export const hasOurBodies = (source: VectorSource, theirs: { readonly lacks: Uint8Array }): boolean =>
  equalBytes(theirs.lacks, LACKS_NOTHING) || equalBytes(theirs.lacks, vectorOf(source).lacks);

const digestOf = (parts: Parts, lacks: Uint8Array): Uint8Array =>
  sha256(concatBytes(utf8ToBytes("svc/vector/v4\0"), lacks, ...parts.map(({ hash }) => hash)));

export function lowestAt(store: SpaceStore, writer: number, seq: number): Uint8Array | undefined {
  const ids = store.changes.atSeq(writer, seq).map(({ id }) => id);
  return ids.sort((a, b) => Buffer.compare(a, b))[0];
}

/**
 * Whether a replica with this vector has a given change of ours. The ids at the ends of chains prove it; what the other has
 * beyond ours, and forks that differ, prove nothing.
 */
export function coverage(source: VectorSource, theirs: TheirVector): (writer: number, seq: number) => boolean {
  const { store } = source;
  const { parts } = vectorOf(source);
  const covered = new Map<number, number>();
  const coveredOf = (writer: number): number => {
    const chain = store.sync.chainOf(writer);
    const mine = chain && stateIn(parts, writerKey(chain.author, chain.id));
    return mine ? coveredSeq(store, mine, theirs) : 0;
  };
  return (writer, seq) => {
    const upto = covered.get(writer) ?? coveredOf(writer);
    covered.set(writer, upto);
    return seq <= upto;
  };
}

export function coversAll(source: VectorSource, theirs: TheirVector): boolean {
  const { store } = source;
  return vectorOf(source).parts.every(
    (part) => theirs.shared.has(part) || part.states.every((mine) => coveredSeq(store, mine, theirs) === mine.seq),
  );
}

/** Up to which seq the other has the chain of a writer. */
function coveredSeq(store: SpaceStore, mine: StoredState, theirs: TheirVector): number {
  const other = theirs.stateOf(mine.key);
  if (!other) return 0;
  if (sameState(mine, other)) return mine.seq;
  if (isForked(mine) || isForked(other) || other.seq > mine.seq) return 0;
  const id = lowestAt(store, mine.no, other.seq);
  return id && equalBytes(id, other.last) ? other.seq : 0;
}

function suspects(source: VectorSource, theirs: TheirVector): StoredState[] {
  const { store } = source;
  const entryOf = entriesOf(vectorOf(source).parts);
  return theirs.states.flatMap((other) => {
    const mine = entryOf(other.key);
    if (!mine || sameState(mine, other)) return [];
    if (isForked(mine) || isForked(other)) return [mine];
    if (other.seq > mine.seq) return [];
    const id = lowestAt(store, mine.no, other.seq);
    return id && equalBytes(id, other.last) ? [] : [mine];
  });
}

function claimedBeyond(source: VectorSource, theirs: TheirVector): number {
  const entryOf = entriesOf(vectorOf(source).parts);
  let beyond = 0;
  for (const other of theirs.states) {
    const mine = entryOf(other.key);
    if (!mine) beyond += other.count;
    else if (!sameState(mine, other)) beyond += Math.max(0, other.count - mine.count);
  }
  return beyond;
}
