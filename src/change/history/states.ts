import type { WeightedCache } from "../../base/weighted-cache.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { ABSENT, type RecordState } from "../fold/record-fold.ts";
import { bytesAtMostOf } from "../fold/record-size.ts";

/** States along a chain are kept this densely near its end, where the next version asked for is likely to branch off. */
const STEP = 32;
const NEAR_END = 256;
const FAR_STEP = 1024;
/** Another version may branch off at any of the last few. */
const ENDS = 16;
/** What an entry weighs in bytes besides its text. */
const ENTRY_BYTES = 100;

/**
 * Keeps folded states of old versions. The key of a state is what it was folded from (the text it began with and the changes
 * since). A state therefore holds for every version in which the record came about in this way, and never goes stale.
 */
export type FoldedStates = ReturnType<typeof createFoldedStates>;

export function createFoldedStates(cache: WeightedCache<string>, owner: string) {
  return {
    /**
     * Returns the states of a row after each of `changes` (by number), folded on top of the text of a checkpoint, or from
     * nothing.
     */
    chain(row: number, checkpoint: string, changes: readonly number[]) {
      const start = Bun.hash(checkpoint) as bigint;
      const high = new Uint32Array(changes.length + 1);
      const low = new Uint32Array(changes.length + 1);
      high[0] = Number(start >> 32n);
      low[0] = Number(start & 0xffff_ffffn);
      for (let i = 0; i < changes.length; i++) {
        high[i + 1] = mix(high[i]! ^ changes[i]!, low[i]!);
        low[i + 1] = mix(low[i]! + changes[i]!, high[i + 1]!);
      }
      const keyOf = (count: number) => `${owner}${row}/${count}/${high[count]}/${low[count]}`;
      const end = changes.length;
      const isKept = (count: number) => count % (count < end - NEAR_END ? FAR_STEP : STEP) === 0;

      return {
        /** Returns the state after as many changes as possible that an earlier read computed. */
        longestKnown(): { count: number; state: RecordState } | undefined {
          for (let count = end; count > 0; count--) {
            if (count < end - ENDS && !isKept(count)) continue;
            const text = cache.get(keyOf(count));
            if (text !== undefined) return { count, state: toState(text) };
          }
          return undefined;
        },
        /** Keeps the state after so many changes, where it is likely to be of use. */
        note(count: number, state: RecordState): void {
          if (count !== end && !isKept(count)) return;
          const text = toText(state);
          cache.keep(keyOf(count), text, text.length * 2 + ENTRY_BYTES);
        },
      };
    },
  };
}

/** One round of a 32-bit mixing function: keys have to be distinct, not secret. */
function mix(value: number, other: number): number {
  const a = Math.imul(value ^ (value >>> 16), 0x85eb_ca6b);
  const b = Math.imul(a ^ (a >>> 13) ^ other, 0xc2b2_ae35);
  return (b ^ (b >>> 16)) >>> 0;
}

function toText(state: RecordState): string {
  return state.kind === "absent" ? "" : `${state.kind === "live" ? "+" : "-"}${JSON.stringify(state.doc)}`;
}

function toState(text: string): RecordState {
  if (text === "") return ABSENT;
  const doc = JSON.parse(text.slice(1)) as JsonObject;
  return text[0] === "+" ? { kind: "live", doc, bytesAtMost: bytesAtMostOf(text) } : { kind: "tombstone", doc };
}
