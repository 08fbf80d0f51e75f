import { bytesToHex, concatBytes, equalBytes, utf8ToBytes } from "../../base/bytes.ts";
import { encodeCbor } from "../../change/dag-cbor.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { SpaceStore } from "../../store/space-store.ts";

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

const NOTHING = new Uint8Array(0);
/** Of so many missing bodies it is told which they are, beyond that how many. */
const LACKS_TOLD = 4096;
/** Of nothing. */
export const LACKS_NOTHING: Uint8Array = new Uint8Array(32);

interface Vector {
  readonly vector: readonly WriterState[];
  /** Which of the changes have no body here that should: equal where the same are missing. */
  readonly lacks: Uint8Array;
  /** Of the vector and what it lacks: with whoever lacks other bodies there is something to do. */
  readonly digest: Uint8Array;
}

const cached = new WeakMap<SpaceStore, Vector & { newestNo: number; revision: number }>();

/** Everything stored, in brief: one entry a writer, ordered. Computed once for as long as nothing is added. */
export function vectorOf(store: SpaceStore): Vector {
  const newestNo = store.sync.newestNo();
  const revision = store.unopened.revision();
  const known = cached.get(store);
  if (known?.newestNo === newestNo && known.revision === revision) return known;
  const lacks = lackingIn(store);
  const vector = known?.newestNo === newestNo ? known.vector : chainsOf(store);
  const fresh = { newestNo, revision, vector, lacks, digest: digestOf(vector, lacks) };
  cached.set(store, fresh);
  return fresh;
}

const chainsOf = (store: SpaceStore): WriterState[] =>
  store.sync
    .chains()
    .map(({ writer, seq, count }): WriterState => {
      const row = store.changes.writerByNo(writer)!;
      const forked = count > seq;
      return {
        author: new Uint8Array(row.author),
        writer: new Uint8Array(row.id),
        seq,
        count,
        last: lowestAt(store, writer, seq)!,
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
export const hasOurBodies = (store: SpaceStore, theirs: { readonly lacks: Uint8Array }): boolean =>
  equalBytes(theirs.lacks, LACKS_NOTHING) || equalBytes(theirs.lacks, vectorOf(store).lacks);

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
export function coverage(store: SpaceStore, theirs: readonly WriterState[]): (writer: number, seq: number) => boolean {
  const theirsByWriter = byWriter(theirs);
  const coveredSeq = new Map<number, number>();
  for (const mine of vectorOf(store).vector) {
    const other = theirsByWriter.get(writerKey(mine.author, mine.writer));
    const no = store.changes.writer(mine.author, mine.writer)!.no;
    if (!other) continue;
    if (sameState(mine, other)) coveredSeq.set(no, mine.seq);
    else if (!isForked(mine) && !isForked(other) && other.seq <= mine.seq) {
      const id = lowestAt(store, no, other.seq);
      if (id && equalBytes(id, other.last)) coveredSeq.set(no, other.seq);
    }
  }
  return (writer, seq) => seq <= (coveredSeq.get(writer) ?? 0);
}

/** Whether everything here is there too. */
export function coversAll(store: SpaceStore, theirs: readonly WriterState[]): boolean {
  const theirsByWriter = byWriter(theirs);
  const covers = coverage(store, theirs);
  return vectorOf(store).vector.every((mine) => {
    const other = theirsByWriter.get(writerKey(mine.author, mine.writer));
    return other && (sameState(mine, other) || covers(store.changes.writer(mine.author, mine.writer)!.no, mine.seq));
  });
}

/** Writers of whose chains the two replicas must compare ids, because one of them, as far as we can tell, forked. */
export function suspects(store: SpaceStore, theirs: readonly WriterState[]): WriterState[] {
  const theirsByWriter = byWriter(theirs);
  return vectorOf(store).vector.filter((mine) => {
    const other = theirsByWriter.get(writerKey(mine.author, mine.writer));
    if (!other || sameState(mine, other)) return false;
    if (isForked(mine) || isForked(other)) return true;
    if (other.seq > mine.seq) return false;
    const id = lowestAt(store, store.changes.writer(mine.author, mine.writer)!.no, other.seq);
    return !id || !equalBytes(id, other.last);
  });
}

/** How many changes the other claims to have that are not here. */
export function claimedBeyond(store: SpaceStore, theirs: readonly WriterState[]): number {
  const mineByWriter = byWriter(vectorOf(store).vector);
  let beyond = 0;
  for (const other of theirs) {
    const mine = mineByWriter.get(writerKey(other.author, other.writer));
    if (!mine) beyond += other.count;
    else if (!sameState(mine, other)) beyond += Math.max(0, other.count - mine.count);
  }
  return beyond;
}
