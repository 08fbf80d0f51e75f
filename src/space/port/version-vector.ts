import { bytesToHex, equalBytes } from "../../base/bytes.ts";

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
  /** The id of the change at `seq`; of several there, the lowest. */
  readonly last: Uint8Array;
  /** Empty, or 32 bytes. */
  readonly forks: Uint8Array;
  /** The writer's, where it is known already. */
  readonly key?: string;
}

/** The same with the writer's key. */
export interface KeyedState extends WriterState {
  readonly key: string;
}

/** The `lacks` of a replica that lacks no body. */
export const LACKS_NOTHING: Uint8Array = new Uint8Array(32);

/**
 * Writers that follow each other in a vector. Where a part ends depends on its writers alone, so that two vectors that have the
 * same writers somewhere have the same parts there.
 */
export interface VectorPart<T extends KeyedState = KeyedState> {
  /** Ordered by `key`; never empty. */
  readonly states: readonly T[];
  /** How many changes they have together. */
  readonly changes: number;
  /** SHA-256 of all of them. */
  readonly hash: Uint8Array;
}

/** Everything that is here, in brief: one entry a writer, ordered by `key`, in parts. */
export interface OwnVector<T extends KeyedState = KeyedState> {
  readonly parts: readonly VectorPart<T>[];
  /** How many writers are in it. */
  readonly writers: number;
  /** A hash of the changes here that should have a body and have none: equal where the same bodies are missing. */
  readonly lacks: Uint8Array;
  /** Of the vector and of what is lacking: two replicas that lack different bodies have something to exchange. */
  readonly digest: Uint8Array;
}

/** All entries of these parts. */
export const statesIn = <T extends KeyedState>(parts: readonly VectorPart<T>[]): T[] =>
  parts.flatMap(({ states }) => states);

/** The last writer of a part. */
export const lastKeyOf = ({ states }: VectorPart): string => states.at(-1)!.key;

/** Index of the part in which a writer stands or would stand; that behind the last part if it comes after all of them. */
export const partIndexOf = (parts: readonly VectorPart[], key: string): number =>
  firstAt(parts.length, (index) => lastKeyOf(parts[index]!) >= key);

/** The entry of a writer in parts. */
export function stateIn<T extends KeyedState>(parts: readonly VectorPart<T>[], key: string): T | undefined {
  const states = parts[partIndexOf(parts, key)]?.states ?? [];
  const state = states[positionIn(states, key)];
  return state?.key === key ? state : undefined;
}

const positionIn = (states: readonly KeyedState[], key: string): number =>
  firstAt(states.length, (index) => states[index]!.key >= key);

/**
 * Finds the entries of writers in parts. For those who ask in the order of the writers: the entry behind the one that was found
 * last is looked at first.
 */
export function entriesOf<T extends KeyedState>(parts: readonly VectorPart<T>[]): (key: string) => T | undefined {
  let [part, at] = [0, 0];
  return (key) => {
    if (at === parts[part]?.states.length) [part, at] = [part + 1, 0];
    if (parts[part]?.states[at]?.key !== key) {
      part = partIndexOf(parts, key);
      at = positionIn(parts[part]?.states ?? [], key);
    }
    const state = parts[part]?.states[at];
    if (state?.key !== key) return undefined;
    at++;
    return state;
  };
}

/** The first of so many places at which something holds that holds at all places behind it. */
function firstAt(length: number, holds: (index: number) => boolean): number {
  let [from, to] = [0, length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (holds(middle)) to = middle;
    else from = middle + 1;
  }
  return from;
}

/**
 * What another replica has: parts of the vector here that are the same there, and what else it says of its writers. Comparing
 * it with what is here costs as much as differs.
 */
export class TheirVector {
  readonly shared: ReadonlySet<VectorPart>;
  /** Ordered by key. */
  readonly states: readonly KeyedState[];
  readonly #parts: readonly VectorPart[];

  constructor(shared: readonly VectorPart[], states: readonly WriterState[]) {
    this.shared = new Set(shared);
    this.#parts = shared;
    this.states = inOrder(states.map(keyed));
  }

  /** What it has of a writer. */
  stateOf(key: string): KeyedState | undefined {
    const state = this.states[positionIn(this.states, key)];
    return state?.key === key ? state : stateIn(this.#parts, key);
  }

  /** How many changes it has. */
  changes(): number {
    const inStates = this.states.reduce((sum, { count }) => sum + count, 0);
    return this.#parts.reduce((sum, { changes }) => sum + changes, inStates);
  }
}

/** A peer may say them in any order. */
function inOrder(states: readonly KeyedState[]): readonly KeyedState[] {
  const isInOrder = states.every(({ key }, index) => index === 0 || states[index - 1]!.key < key);
  return isInOrder ? states : states.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

export const isForked = (state: WriterState): boolean => state.count > state.seq;

export const sameState = (a: WriterState, b: WriterState): boolean =>
  a === b || (a.seq === b.seq && a.count === b.count && equalBytes(a.last, b.last) && equalBytes(a.forks, b.forks));

export const writerKey = (author: Uint8Array, writer: Uint8Array): string => bytesToHex(author) + bytesToHex(writer);

/** States by writer. */
export const byWriter = (vector: readonly WriterState[]): Map<string, WriterState> =>
  new Map(vector.map((state) => [state.key ?? writerKey(state.author, state.writer), state]));

/** A state with its key. */
export const keyed = (state: WriterState): KeyedState =>
  state.key === undefined ? { ...state, key: writerKey(state.author, state.writer) } : (state as KeyedState);
