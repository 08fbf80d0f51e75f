import { sha256 } from "../../crypto/hash.ts";
import { type KeyedState, lastKeyOf, type VectorPart } from "../port/version-vector.ts";

/**
 * From so many writers on a part ends behind the next one whose id ends with four zero bits, so that parts have 32 writers on
 * average; at the latest it ends behind `MOST`, since members choose their ids.
 */
const LEAST = 16;
const MOST = 256;

const AUTHOR_BYTES = 32;
/** Author, writer, seq, count, last, forks (zeros where there are none). */
const HASHED_BYTES = AUTHOR_BYTES + 16 + 8 + 8 + 32 + 32;

const isEnd = (states: readonly KeyedState[]): boolean =>
  states.length >= MOST || (states.length >= LEAST && states.at(-1)!.key.endsWith("0"));

/** Parts of entries that are ordered by key. */
export const partsOf = <T extends KeyedState>(states: readonly T[]): VectorPart<T>[] => mergedParts([], states);

/**
 * The parts with entries put in, which are ordered by key; where a writer is in both as the second has it. The same parts as if
 * all entries were cut anew, and the very part where nothing in it changed.
 */
export function mergedParts<T extends KeyedState>(
  before: readonly VectorPart<T>[],
  fresh: readonly T[],
): VectorPart<T>[] {
  const parts: VectorPart<T>[] = [];
  /** Of the part that has not ended yet. */
  let open: T[] = [];
  const put = (state: T): void => {
    open.push(state);
    if (isEnd(open)) close();
  };
  const close = (): void => {
    parts.push(partOf(open));
    open = [];
  };
  let next = 0;
  for (const part of before) {
    const end = lastKeyOf(part);
    const isTouched = next < fresh.length && fresh[next]!.key <= end;
    // What comes behind a part that has not ended, the last one, goes into it.
    const isUnended = !isEnd(part.states) && next < fresh.length;
    if (open.length === 0 && !isTouched && !isUnended) {
      parts.push(part);
      continue;
    }
    for (const state of part.states) {
      while (next < fresh.length && fresh[next]!.key < state.key) put(fresh[next++]!);
      put(fresh[next]?.key === state.key ? fresh[next++]! : state);
    }
  }
  while (next < fresh.length) put(fresh[next++]!);
  if (open.length > 0) close();
  return parts;
}

function partOf<T extends KeyedState>(states: readonly T[]): VectorPart<T> {
  const bytes = Buffer.alloc(states.length * HASHED_BYTES);
  let changes = 0;
  for (const [index, { key, seq, count, last, forks }] of states.entries()) {
    const at = index * HASHED_BYTES;
    let to = at + bytes.write(key, at, "hex");
    to = bytes.writeBigUInt64BE(BigInt(seq), to);
    to = bytes.writeBigUInt64BE(BigInt(count), to);
    bytes.set(last, to);
    bytes.set(forks, to + last.length);
    changes += count;
  }
  return { states, changes, hash: sha256(bytes) };
}
