import { bytesToHex, concatBytes, equalBytes, utf8ToBytes } from "../../base/bytes.ts";
import { encodeCbor } from "../../base/dag-cbor.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { SYNC_BOUNDS } from "./bounds.ts";

/**
 * What a replica has of one writer. A chain has no holes, so its highest seq says it all, unless the writer forked: two
 * devices wrote under one name. Then there are more changes than seqs, and `forks` is a hash over the doubled ones.
 */
export interface WriterState {
  readonly author: Uint8Array;
  readonly writer: Uint8Array;
  readonly seq: number;
  readonly count: number;
  /** Id at `seq`, the lowest of several. */
  readonly last: Uint8Array;
  /** Empty, or 32 bytes. */
  readonly forks: Uint8Array;
}

/** What is here of a writer. */
export interface OwnState extends WriterState {
  /** Its number in the store. */
  readonly no: number;
  readonly key: string;
}

const NOTHING = new Uint8Array(0);
/** Of so many missing bodies it is told which they are, beyond that how many. */
const LACKS_TOLD = 4096;
/** Of nothing. */
export const LACKS_NOTHING: Uint8Array = new Uint8Array(32);

interface OwnVector {
  readonly vector: readonly OwnState[];
  /** Which of the changes have no body here that should: equal where the same are missing. */
  readonly lacks: Uint8Array;
  /** Of the vector and what it lacks: with whoever lacks other bodies there is something to do. */
  readonly digest: Uint8Array;
}

/** What a vector is of: a space, as far as it matters here. */
export interface VectorSource {
  readonly engine: { readonly store: SpaceStore };
  readonly acl: { head(): { readonly id: Uint8Array } };
}

const cached = new WeakMap<SpaceStore, OwnVector & { newestNo: number; revision: number; aclHead: string }>();

/**
 * Everything stored, in brief: one entry a writer, ordered. Computed once for as long as nothing is added and the ACL log
 * stays as it is, by which a writer's changes come to count or cease to.
 */
export function vectorOf(source: VectorSource): OwnVector {
  const { store } = source.engine;
  const newestNo = store.sync.newestNo();
  const revision = store.unopened.revision();
  const aclHead = bytesToHex(source.acl.head().id);
  const known = cached.get(store);
  const isSame = known?.newestNo === newestNo && known.aclHead === aclHead;
  if (isSame && known.revision === revision) return known;
  const lacks = lackingIn(store);
  const vector = isSame ? known.vector : chainsOf(store);
  const fresh = { newestNo, revision, aclHead, vector, lacks, digest: digestOf(vector, lacks) };
  cached.set(store, fresh);
  return fresh;
}

const chainsOf = (store: SpaceStore): OwnState[] =>
  store.sync
    .chains()
    .map(({ writer, author, id, seq, count, last }): OwnState => {
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

function lackingIn({ unopened }: SpaceStore): Uint8Array {
  const ids = unopened.missingBodies(LACKS_TOLD);
  if (ids.length === 0) return LACKS_NOTHING;
  const count = ids.length < LACKS_TOLD ? ids.length : unopened.countBodies();
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

/** Part of a vector: the writers behind `after`, up to and with `upto`. Both fields of a writer, joined; empty: no bound. */
export interface WriterRange {
  readonly after: Uint8Array;
  readonly upto: Uint8Array;
}

export interface VectorPart {
  readonly range: WriterRange;
  readonly vector: readonly OwnState[];
}

const boundOf = ({ author, writer }: WriterState): Uint8Array => concatBytes(author, writer);

/** A vector in parts that fit into a message each. Together their ranges hold every writer that there can be. */
function rangesOf(vector: readonly OwnState[]): VectorPart[] {
  const size = SYNC_BOUNDS.writers;
  const parts: VectorPart[] = [];
  for (let from = 0; from === 0 || from < vector.length; from += size) {
    const part = vector.slice(from, from + size);
    const after = from === 0 ? NOTHING : boundOf(vector[from - 1]!);
    const upto = from + size >= vector.length ? NOTHING : boundOf(part.at(-1)!);
    parts.push({ range: { after, upto }, vector: part });
  }
  return parts;
}

/** Those parts of ours in which the other has something else; the only one there is in any case. */
export function rangesThatDiffer(mine: readonly OwnState[], theirs: readonly WriterState[]): VectorPart[] {
  const parts = rangesOf(mine);
  if (parts.length === 1) return parts;
  const mineByWriter = new Map(mine.map((state) => [state.key, state]));
  const different = theirs
    .map((other) => ({ other, key: writerKey(other.author, other.writer) }))
    .filter(({ other, key }) => {
      const own = mineByWriter.get(key);
      return !own || !sameState(own, other);
    })
    .map(({ key }) => key);
  const ends = parts.map(({ range }) => bytesToHex(range.upto));
  const at = new Set(different.map((key) => ends.findIndex((end) => end === "" || key <= end)));
  return parts.filter((_, index) => at.has(index));
}

/** The writers of a range. */
export function withinRange(vector: readonly OwnState[], { after, upto }: WriterRange): readonly OwnState[] {
  const [first, last] = [bytesToHex(after), bytesToHex(upto)];
  return first === "" && last === "" ? vector : vector.filter(({ key }) => key > first && (last === "" || key <= last));
}

/** As much of a vector as fits into a message, from a writer on, and whether it goes on after that. */
export function vectorPage(
  vector: readonly OwnState[],
  after: Uint8Array,
): { vector: readonly OwnState[]; rest: boolean } {
  const left = withinRange(vector, { after, upto: NOTHING });
  return { vector: left.slice(0, SYNC_BOUNDS.writers), rest: left.length > SYNC_BOUNDS.writers };
}

export function lowestAt(store: SpaceStore, writer: number, seq: number): Uint8Array | undefined {
  const ids = store.changes.atSeq(writer, seq).map(({ id }) => id);
  return ids.sort((a, b) => Buffer.compare(a, b))[0];
}

export const isForked = (state: WriterState): boolean => state.count > state.seq;

export const sameState = (a: WriterState, b: WriterState): boolean =>
  a.seq === b.seq && a.count === b.count && equalBytes(a.last, b.last) && equalBytes(a.forks, b.forks);

export const writerKey = (author: Uint8Array, writer: Uint8Array): string => bytesToHex(author) + bytesToHex(writer);

/** States by writer. */
export const byWriter = (vector: readonly WriterState[]): Map<string, WriterState> =>
  new Map(vector.map((state) => [writerKey(state.author, state.writer), state]));

/**
 * Whether a replica with this vector has a change of ours: proven by the ids at the ends of chains, so what the other
 * has beyond ours, and forks that differ, prove nothing.
 */
export function coverage(
  source: VectorSource,
  theirs: readonly WriterState[],
): (writer: number, seq: number) => boolean {
  const covered = coveredSeqs(source, theirs);
  return (writer, seq) => seq <= (covered.get(writer) ?? 0);
}

/** Whether everything here is there too. */
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

/** Writers of whose chains the two replicas must compare ids, because one of them, as far as we can tell, forked. */
export function suspects(source: VectorSource, theirs: readonly WriterState[]): OwnState[] {
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

/** How many changes the other claims to have that are not here. */
export function claimedBeyond(source: VectorSource, theirs: readonly WriterState[]): number {
  const mineByWriter = new Map(vectorOf(source).vector.map((mine) => [mine.key, mine]));
  let beyond = 0;
  for (const other of theirs) {
    const mine = mineByWriter.get(writerKey(other.author, other.writer));
    if (!mine) beyond += other.count;
    else if (!sameState(mine, other)) beyond += Math.max(0, other.count - mine.count);
  }
  return beyond;
}
