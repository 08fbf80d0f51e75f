import type { Clock } from "../base/clock.ts";

const WINDOW_MS = 10 * 60_000;
/** This few refusals say nothing about the node itself. */
const FREE_REFUSALS = 20;
/**
 * When refusals exceed this share of what was sent, the fault is probably not the tokens': wrong credentials, a wrong
 * app, or trouble at the provider.
 */
const MAX_SHARE = 0.1;

export interface PruneGuard {
  accepted(): void;
  /** Counts a token that a provider called dead. Returns whether to believe it. */
  mayPrune(): boolean;
}

/** Keeps a node from dropping all tokens when many are refused at once. */
export function createPruneGuard(clock: Clock): PruneGuard {
  let sinceMs = clock.nowMs();
  let sent = 0;
  let refused = 0;
  const turn = (): void => {
    if (clock.nowMs() - sinceMs < WINDOW_MS) return;
    sinceMs = clock.nowMs();
    sent = 0;
    refused = 0;
  };
  return {
    accepted() {
      turn();
      sent++;
    },
    mayPrune() {
      turn();
      sent++;
      refused++;
      return refused <= FREE_REFUSALS || refused <= sent * MAX_SHARE;
    },
  };
}
