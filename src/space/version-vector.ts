import { bytesToHex, equalBytes } from "../base/bytes.ts";

/**
 * What a replica has of one writer. A chain has no holes, so its highest seq says it all, unless the writer forked, that
 * is, two devices wrote under one writer id. Then there are more changes than seqs, and `forks` is a hash over the ids that
 * share a seq.
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
  /** The writer's, where it is known already. */
  readonly key?: string;
}

/** What is here of a writer. */
export interface OwnState extends WriterState {
  readonly key: string;
}

/** The `lacks` of a replica that lacks no body. */
export const LACKS_NOTHING: Uint8Array = new Uint8Array(32);

/** Everything that is here, in brief: one entry a writer, ordered by `key`. */
export interface OwnVector {
  readonly vector: readonly OwnState[];
  /** A hash of the changes here that should have a body and have none: equal where the same bodies are missing. */
  readonly lacks: Uint8Array;
  /** Of the vector and of what is lacking: two replicas that lack different bodies have something to exchange. */
  readonly digest: Uint8Array;
}

/**
 * Part of a vector: the writers after `after`, up to and including `upto`. Each is both fields of a writer, joined; empty
 * means no bound.
 */
export interface WriterRange {
  readonly after: Uint8Array;
  readonly upto: Uint8Array;
}

/** The writers of a range. */
export function withinRange<T extends OwnState>(vector: readonly T[], { after, upto }: WriterRange): readonly T[] {
  const begin = after.length === 0 ? 0 : placeBehind(vector, bytesToHex(after));
  const end = upto.length === 0 ? vector.length : placeBehind(vector, bytesToHex(upto));
  return begin === 0 && end === vector.length ? vector : vector.slice(begin, end);
}

/**
 * Finds the entries of writers in a vector, which is ordered by `key`. Those who ask mostly go through another vector in its
 * order: the entry behind the one that was found last is looked at first.
 */
export function entriesOf<T extends OwnState>(vector: readonly T[]): (key: string) => T | undefined {
  let next = 0;
  return (key) => {
    if (vector[next]?.key !== key) next = placeBehind(vector, key) - 1;
    const entry = vector[next];
    if (entry?.key !== key) return undefined;
    next++;
    return entry;
  };
}

/** How many entries stand up to and at a key. */
function placeBehind(vector: readonly OwnState[], key: string): number {
  let [from, to] = [0, vector.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (vector[middle]!.key <= key) from = middle + 1;
    else to = middle;
  }
  return from;
}

export const isForked = (state: WriterState): boolean => state.count > state.seq;

export const sameState = (a: WriterState, b: WriterState): boolean =>
  a === b || (a.seq === b.seq && a.count === b.count && equalBytes(a.last, b.last) && equalBytes(a.forks, b.forks));

export const writerKey = (author: Uint8Array, writer: Uint8Array): string => bytesToHex(author) + bytesToHex(writer);

/** States by writer. */
export const byWriter = (vector: readonly WriterState[]): Map<string, WriterState> =>
  new Map(vector.map((state) => [keyOf(state), state]));

export const keyOf = (state: WriterState): string => state.key ?? writerKey(state.author, state.writer);
