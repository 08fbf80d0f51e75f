import { bytesToHex } from "../../base/bytes.ts";
import {
  entriesOf,
  type KeyedState,
  lastKeyOf,
  type OwnVector,
  partIndexOf,
  sameState,
  statesIn,
  type TheirVector,
  type VectorPart,
  type WriterRange,
} from "../../space/version-vector.ts";
import { SYNC_BOUNDS } from "./bounds.ts";
import type { VectorPage } from "./messages.ts";

const NOTHING = new Uint8Array(0);

/** Writers of ours, and the range that they are all of ours in. */
export interface VectorStretch {
  readonly range: WriterRange;
  readonly vector: readonly KeyedState[];
}

/**
 * Stretches of ours in which the other differs, each of which fits into a message. A vector that fits into one is one stretch,
 * which differs in any case.
 */
export function stretchesThatDiffer({ parts, writers }: OwnVector, theirs: TheirVector): VectorStretch[] {
  if (writers <= SYNC_BOUNDS.writers) return [{ range: { after: NOTHING, upto: NOTHING }, vector: statesIn(parts) }];
  const stretches: VectorStretch[] = [];
  let size = 0;
  let [from, end] = [-1, -1];
  const close = (): void => {
    if (from < 0) return;
    const after = from === 0 ? NOTHING : boundOf(parts[from - 1]!);
    const upto = end === parts.length - 1 ? NOTHING : boundOf(parts[end]!);
    stretches.push({ range: { after, upto }, vector: statesIn(parts.slice(from, end + 1)) });
  };
  for (const index of partsThatDiffer(parts, theirs)) {
    const grown = parts.slice(end + 1, index + 1).reduce((sum, { states }) => sum + states.length, size);
    if (from >= 0 && grown <= SYNC_BOUNDS.writers) size = grown;
    else {
      close();
      from = index;
      size = parts[index]!.states.length;
    }
    end = index;
  }
  close();
  return stretches;
}

/** Indexes of the parts in which the other has something that is not here, in their order. */
function partsThatDiffer(parts: readonly VectorPart[], { states }: TheirVector): Set<number> {
  const entryOf = entriesOf(parts);
  const differing = new Set<number>();
  for (const other of states) {
    const own = entryOf(other.key);
    if (!own || !sameState(own, other)) differing.add(Math.min(partIndexOf(parts, other.key), parts.length - 1));
  }
  return differing;
}

const boundOf = (part: VectorPart): Uint8Array => Uint8Array.fromHex(lastKeyOf(part));

/** The parts of which all writers come after one; all parts after none. */
export function partsBehind<T extends KeyedState>(parts: readonly VectorPart<T>[], after: string): VectorPart<T>[] {
  if (after === "") return [...parts];
  const from = partIndexOf(parts, after);
  const isBehind = parts[from] !== undefined && parts[from].states[0]!.key > after;
  return parts.slice(isBehind ? from : from + 1);
}

/** What stands in a vector behind a writer, but for the parts that the other has named; as much as fits into a message. */
export function vectorPage({ parts }: OwnVector, after: Uint8Array, named: readonly Uint8Array[]): VectorPage {
  const indexByHash = new Map(named.map((hash, index) => [bytesToHex(hash), index]));
  const shared = new Uint8Array(Math.ceil(named.length / 8));
  const vector: KeyedState[] = [];
  const behind = bytesToHex(after);
  for (const part of parts.slice(after.length === 0 ? 0 : partIndexOf(parts, behind))) {
    const index = indexByHash.get(bytesToHex(part.hash));
    if (index !== undefined) {
      shared[index >> 3]! |= 1 << (index & 7);
      continue;
    }
    const states = part.states.filter(({ key }) => after.length === 0 || key > behind);
    if (vector.length + states.length > SYNC_BOUNDS.writers) return { shared, vector, rest: true };
    vector.push(...states);
  }
  return { shared, vector, rest: false };
}
