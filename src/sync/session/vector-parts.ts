import { bytesToHex } from "../../base/bytes.ts";
import type { Pull } from "../../space/port/replica.ts";
import {
  entriesOf,
  type KeyedState,
  type OwnVector,
  partIndexOf,
  sameState,
  statesIn,
  type TheirVector,
  type VectorPart,
  type WriterState,
} from "../../space/port/version-vector.ts";
import { SYNC_BOUNDS } from "./bounds.ts";
import type { VectorPage } from "./messages.ts";

const NOTHING = new Uint8Array(0);

/**
 * What a remote is asked for by: the whole of our vector where it fits into a message; else what is here of the writers of which
 * it has something else, as many as fit into one message at a time.
 */
export function vectorsToAsk({ parts, writers }: OwnVector, theirs: TheirVector): Pick<Pull, "vector" | "only">[] {
  if (writers <= SYNC_BOUNDS.writers) return [{ vector: statesIn(parts) }];
  const entryOf = entriesOf(parts);
  const differing = theirs.states.flatMap((other) => {
    const own = entryOf(other.key);
    if (!own) return [lacked(other)];
    return sameState(own, other) ? [] : [own];
  });
  const asked: Pick<Pull, "vector" | "only">[] = [];
  for (let at = 0; at < differing.length; at += SYNC_BOUNDS.writers)
    asked.push({ vector: differing.slice(at, at + SYNC_BOUNDS.writers), only: true });
  return asked;
}

/** A writer of whom nothing is here. */
const lacked = ({ author, writer }: WriterState): WriterState => ({
  author,
  writer,
  seq: 0,
  count: 0,
  last: new Uint8Array(32),
  forks: NOTHING,
});

/** The parts of which all writers come after one: all of them after none, whose key is empty. */
export function partsBehind<T extends KeyedState>(parts: readonly VectorPart<T>[], after: string): VectorPart<T>[] {
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
  for (const part of parts.slice(partIndexOf(parts, behind))) {
    const index = indexByHash.get(bytesToHex(part.hash));
    if (index !== undefined) {
      shared[index >> 3]! |= 1 << (index & 7);
      continue;
    }
    const states = part.states.filter(({ key }) => key > behind);
    if (vector.length + states.length > SYNC_BOUNDS.writers) return { shared, vector, rest: true };
    vector.push(...states);
  }
  return { shared, vector, rest: false };
}
