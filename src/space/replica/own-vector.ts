import { bytesToHex, concatBytes, equalBytes, utf8ToBytes } from "../../base/bytes.ts";
import { encodeCbor } from "../../base/dag-cbor.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { Replica } from "../replica.ts";
import {
  byWriter,
  isForked,
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

const cached = new WeakMap<
  SpaceStore,
  StoredVector & { newestNo: number; revision: number; aclHead: string; waiting: string }
>();

/**
 * Everything stored, in brief. It is computed once for as long as nothing is added and the ACL log stays the same; the ACL
 * log decides which changes of a writer count, and which writers wait for a place in it.
 */
export function vectorOf(source: VectorSource): StoredVector {
  const { store } = source.engine;
  const newestNo = store.sync.newestNo();
  const revision = store.pendingBodies.revision();
  const aclHead = bytesToHex(source.acl.head().id);
  const known = cached.get(store);
  const waiting = store.sync.displacedWriters().join();
  const isSame = known?.newestNo === newestNo && known.aclHead === aclHead && known.waiting === waiting;
  if (isSame && known.revision === revision) return known;
  const lacks = lackingIn(store);
  const vector = isSame ? known.vector : chainsOf(store);
  const fresh = { newestNo, revision, aclHead, waiting, vector, lacks, digest: digestOf(vector, lacks) };
  cached.set(store, fresh);
  return fresh;
}

const chainsOf = (store: SpaceStore): StoredState[] =>
  store.sync
    .chains()
    .map(({ writer, author, id, seq, count, last }): StoredState => {
      const forked = count > seq;
      return {
        no: writer,
        key: writerKey(author, id),
        author: new Uint8Array(author),
        writer: new Uint8Array(id),
        seq,
        count,
        last: forked ? lowestAt(store, writer, seq)! : last,
        forks: forked ? sha256(concatBytes(...store.sync.forkedIds(writer))) : NOTHING,
      };
    })
    .sort((a, b) => Buffer.compare(a.author, b.author) || Buffer.compare(a.writer, b.writer));

function lackingIn({ pendingBodies }: SpaceStore): Uint8Array {
  const ids = pendingBodies.missingBodies(LACKS_TOLD);
  if (ids.length === 0) return LACKS_NOTHING;
  const count = ids.length < LACKS_TOLD ? ids.length : pendingBodies.countBodies();
  return sha256(concatBytes(utf8ToBytes("svc/lacks/v1\0"), encodeCbor(count), ...ids));
}

/** Whether a replica that lacks these bodies has all that are here: it lacks none, or the same. */
export const hasOurBodies = (source: VectorSource, theirs: { readonly lacks: Uint8Array }): boolean =>
  equalBytes(theirs.lacks, LACKS_NOTHING) || equalBytes(theirs.lacks, vectorOf(source).lacks);

function digestOf(vector: readonly WriterState[], lacks: Uint8Array): Uint8Array {
  const entries = vector.map(({ author, writer, seq, count, last, forks }) => [
    author,
    writer,
    seq,
    count,
    last,
    forks,
  ]);
  return sha256(concatBytes(utf8ToBytes("svc/vector/v1\0"), encodeCbor([lacks, entries])));
}

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
  const mineByWriter = new Map(vectorOf(source).vector.map((mine) => [mine.key, mine]));
  let beyond = 0;
  for (const other of theirs) {
    const mine = mineByWriter.get(writerKey(other.author, other.writer));
    if (!mine) beyond += other.count;
    else if (!sameState(mine, other)) beyond += Math.max(0, other.count - mine.count);
  }
  return beyond;
}
