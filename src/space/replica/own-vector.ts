import { bytesToHex, concatBytes, equalBytes, utf8ToBytes } from "../../base/bytes.ts";
import { encodeCbor } from "../../base/dag-cbor.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { ChainSize } from "../../store/sync-table.ts";
import type { Replica } from "../replica.ts";
import {
  byWriter,
  entriesOf,
  isForked,
  keyOf,
  LACKS_NOTHING,
  type OwnState,
  type OwnVector,
  sameState,
  type WriterState,
  writerKey,
} from "../version-vector.ts";

/** What is here of a writer, with its number in the store. */
export interface StoredState extends OwnState {
  readonly no: number;
}

export interface StoredVector extends OwnVector {
  readonly vector: readonly StoredState[];
}

const NOTHING = new Uint8Array(0);
/** Up to so many missing bodies are named in the hash; beyond that it says how many there are. */
const LACKS_TOLD = 4096;

/** What a vector is computed from: the parts of a space that matter here. */
export interface VectorSource {
  readonly engine: { readonly store: SpaceStore };
  readonly acl: { head(): { readonly id: Uint8Array } };
}

/** The part of a replica that compares the chains here with those of others. */
export const comparisons = (
  source: VectorSource,
): Pick<Replica, "vector" | "isCoveredBy" | "claimedBeyond" | "suspects"> => ({
  vector: source.engine.store.memo(() => vectorOf(source)),
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
  /** One for each `PART` entries of the vector. */
  readonly partHashes: readonly Uint8Array[];
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
/** Entries are hashed so many at a time, so that of one that changed few are hashed again. */
const PART = 256;
/** Author, writer, seq, count, last, forks (zeros where there are none). */
const HASHED_BYTES = AUTHOR_BYTES + 16 + 8 + 8 + 32 + 32;
/** Of so many changes that came it is looked whose they are; of more the vector is computed anew. */
const PATCHED_CHANGES = 20_000;

const cached = new WeakMap<SpaceStore, KnownVector>();

/**
 * Everything stored, in brief. While the ACL log stays as it is and the same writers wait for a place in it, and no change
 * came to count or ceased to, what is added touches its writers alone.
 */
export function vectorOf(source: VectorSource): StoredVector {
  const { store } = source.engine;
  const newestNo = store.sync.newestNo();
  const revision = store.pendingBodies.revision();
  const aclHead = bytesToHex(source.acl.head().id);
  const known = cached.get(store);
  const waiting = store.sync.displacedWriters().join();
  const rewrites = store.changes.rewrites();
  const isOfSame = known?.aclHead === aclHead && known.waiting === waiting;
  const isSame = isOfSame && known.newestNo === newestNo;
  if (isSame && known.revision === revision) return known;
  const lacks = lackingIn(store);
  const vector = isSame
    ? known.vector
    : ((isOfSame && known.rewrites === rewrites ? patched(store, known) : undefined) ?? chainsOf(store));
  const partHashes = hashesOfParts(vector, known);
  const digest = digestOf(partHashes, lacks);
  const fresh = { newestNo, revision, rewrites, aclHead, waiting, vector, lacks, partHashes, digest };
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
function patched(store: SpaceStore, known: KnownVector): StoredState[] | undefined {
  const { vector, newestNo } = known;
  if (store.sync.newestNo() < newestNo || store.sync.newestNo() - newestNo > PATCHED_CHANGES) return undefined;
  const fresh: StoredState[] = [];
  for (const writer of store.sync.writersAfter(newestNo, PATCHED_CHANGES)) {
    const chain = store.sync.chainOf(writer);
    if (chain) fresh.push(stateOf(store, chain)); // of nobody's, and strangers', none is in any vector before or after
  }
  return merged(vector, fresh.sort(byKey));
}

/** Both in order, where a writer is in both as the second has it. */
function merged(before: readonly StoredState[], fresh: readonly StoredState[]): StoredState[] {
  const all: StoredState[] = [];
  let at = 0;
  for (const state of fresh) {
    while (at < before.length && before[at]!.key < state.key) all.push(before[at++]!);
    if (before[at]?.key === state.key) at++;
    all.push(state);
  }
  while (at < before.length) all.push(before[at++]!);
  return all;
}

function stateOf(store: SpaceStore, chain: ChainSize): StoredState {
  const { writer, seq, count, last } = chain;
  return count > seq
    ? new Chain(chain, lowestAt(store, writer, seq)!, sha256(concatBytes(...store.sync.forkedIds(writer))))
    : new Chain(chain, last, NOTHING);
}

function lackingIn({ pendingBodies }: SpaceStore): Uint8Array {
  const ids = pendingBodies.missingBodies(LACKS_TOLD);
  if (ids.length === 0) return LACKS_NOTHING;
  const count = ids.length < LACKS_TOLD ? ids.length : pendingBodies.countBodies();
  return sha256(concatBytes(utf8ToBytes("svc/lacks/v1\0"), encodeCbor(count), ...ids));
}

/** Whether a replica that lacks these bodies has all that are here: it lacks none, or the same. */
export const hasOurBodies = (source: VectorSource, theirs: { readonly lacks: Uint8Array }): boolean =>
  equalBytes(theirs.lacks, LACKS_NOTHING) || equalBytes(theirs.lacks, vectorOf(source).lacks);

/** Of what stands where it stood the hash is known. */
function hashesOfParts(vector: readonly StoredState[], known: KnownVector | undefined): Uint8Array[] {
  const hashes: Uint8Array[] = [];
  for (let at = 0; at < vector.length; at += PART) {
    const isKnown = known !== undefined && isSamePart(vector, known.vector, at);
    hashes.push(isKnown ? known.partHashes[at / PART]! : hashOfPart(vector.slice(at, at + PART)));
  }
  return hashes;
}

function hashOfPart(part: readonly StoredState[]): Uint8Array {
  const bytes = Buffer.alloc(part.length * HASHED_BYTES);
  let at = 0;
  for (const { key, seq, count, last, forks } of part) {
    let to = at + bytes.write(key, at, "hex");
    to = bytes.writeBigUInt64BE(BigInt(seq), to);
    to = bytes.writeBigUInt64BE(BigInt(count), to);
    bytes.set(last, to);
    bytes.set(forks, to + last.length);
    at += HASHED_BYTES;
  }
  return sha256(bytes);
}

function isSamePart(a: readonly StoredState[], b: readonly StoredState[], from: number): boolean {
  for (let at = from; at < from + PART; at++) if (a[at] !== b[at]) return false;
  return true;
}

const digestOf = (partHashes: readonly Uint8Array[], lacks: Uint8Array): Uint8Array =>
  sha256(concatBytes(utf8ToBytes("svc/vector/v3\0"), lacks, ...partHashes));

export function lowestAt(store: SpaceStore, writer: number, seq: number): Uint8Array | undefined {
  const ids = store.changes.atSeq(writer, seq).map(({ id }) => id);
  return ids.sort((a, b) => Buffer.compare(a, b))[0];
}

/**
 * Whether a replica with this vector has a given change of ours. The ids at the ends of chains prove it; what the other has
 * beyond ours, and forks that differ, prove nothing.
 */
export function coverage(
  source: VectorSource,
  theirs: readonly WriterState[],
): (writer: number, seq: number) => boolean {
  const covered = coveredSeqs(source, theirs);
  return (writer, seq) => seq <= (covered.get(writer) ?? 0);
}

export function coversAll(source: VectorSource, theirs: readonly WriterState[]): boolean {
  const covered = coveredSeqs(source, theirs);
  return vectorOf(source).vector.every(({ no, seq }) => covered.get(no) === seq);
}

/** Up to which seq the other has the chain of each writer number. */
function coveredSeqs(source: VectorSource, theirs: readonly WriterState[]): ReadonlyMap<number, number> {
  const { store } = source.engine;
  const theirsByWriter = byWriter(theirs);
  const covered = new Map<number, number>();
  for (const mine of vectorOf(source).vector) {
    const other = theirsByWriter.get(mine.key);
    if (!other) continue;
    if (sameState(mine, other)) covered.set(mine.no, mine.seq);
    else if (!isForked(mine) && !isForked(other) && other.seq <= mine.seq) {
      const id = lowestAt(store, mine.no, other.seq);
      if (id && equalBytes(id, other.last)) covered.set(mine.no, other.seq);
    }
  }
  return covered;
}

function suspects(source: VectorSource, theirs: readonly WriterState[]): StoredState[] {
  const { store } = source.engine;
  const theirsByWriter = byWriter(theirs);
  return vectorOf(source).vector.filter((mine) => {
    const other = theirsByWriter.get(mine.key);
    if (!other || sameState(mine, other)) return false;
    if (isForked(mine) || isForked(other)) return true;
    if (other.seq > mine.seq) return false;
    const id = lowestAt(store, mine.no, other.seq);
    return !id || !equalBytes(id, other.last);
  });
}

function claimedBeyond(source: VectorSource, theirs: readonly WriterState[]): number {
  const entryOf = entriesOf(vectorOf(source).vector);
  let beyond = 0;
  for (const other of theirs) {
    const mine = entryOf(keyOf(other));
    if (!mine) beyond += other.count;
    else if (!sameState(mine, other)) beyond += Math.max(0, other.count - mine.count);
  }
  return beyond;
}
