import type { OpenBatch, TouchedRecord } from "./fold/commit-batch.ts";
import type { WriteTx } from "./write-tx.ts";

/**
 * Keeps device-local fields in line with what was just folded, inside the same transaction, so that a crash never parts the
 * two. Must not throw for content it does not accept: that would fail everybody's commit.
 */
export type Reaction = (
  touched: readonly TouchedRecord[],
  local: Pick<WriteTx, "object" | "record" | "setLocal">,
) => void;

export type Reactions = ReturnType<typeof createReactions>;

/** What follows on this device from what was folded, dataset by dataset. */
export function createReactions(batch: OpenBatch, local: Parameters<Reaction>[1]) {
  const reactions = new Map<string, Reaction>();
  return {
    /** One reaction a dataset. */
    add: (dataset: string, reaction: Reaction): void => void reactions.set(dataset, reaction),
    run(): void {
      if (reactions.size === 0) return;
      const folded = batch.touched().filter((touched) => touched.synced && reactions.has(touched.dataset));
      for (const dataset of new Set(folded.map((touched) => touched.dataset))) {
        const touched = folded.filter((one) => one.dataset === dataset);
        reactions.get(dataset)!(touched, local);
      }
    },
  };
}
