import { bytesToHex, concatBytes } from "../../base/bytes.ts";
import {
  entriesOf,
  keyOf,
  type OwnState,
  sameState,
  type WriterRange,
  type WriterState,
  withinRange,
} from "../../space/version-vector.ts";
import { SYNC_BOUNDS } from "./bounds.ts";

const NOTHING = new Uint8Array(0);

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

/** The parts of ours in which the other differs; if there is only one part, that one in any case. */
export function rangesThatDiffer(mine: readonly OwnState[], theirs: readonly WriterState[]): VectorPart[] {
  const parts = rangesOf(mine);
  if (parts.length === 1) return parts;
  const entryOf = entriesOf(mine);
  const different = theirs
    .map((other) => ({ other, key: keyOf(other) }))
    .filter(({ other, key }) => {
      const own = entryOf(key);
      return !own || !sameState(own, other);
    })
    .map(({ key }) => key);
  const ends = parts.map(({ range }) => bytesToHex(range.upto));
  const at = new Set(different.map((key) => ends.findIndex((end) => end === "" || key <= end)));
  return parts.filter((_, index) => at.has(index));
}

/** As much of a vector as fits into a message, from a writer on, and whether it goes on after that. */
export function vectorPage(
  vector: readonly OwnState[],
  after: Uint8Array,
): { vector: readonly OwnState[]; rest: boolean } {
  const left = withinRange(vector, { after, upto: NOTHING });
  return { vector: left.slice(0, SYNC_BOUNDS.writers), rest: left.length > SYNC_BOUNDS.writers };
}
