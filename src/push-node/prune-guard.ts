import type { Clock } from "../base/clock.ts";

const WINDOW_MS = 10 * 60_000;
/** So few say nothing about the node itself. */
const FREE_REFUSALS = 20;
/** Refusals above this share of what was sent are a fault of ours: wrong credentials, a wrong app, a provider's bad day. */
const MAX_SHARE = 0.1;

export interface PruneGuard {
  accepted(): void;
  /** A provider called a token dead. Answers whether it may be believed. */
  mayPrune(): boolean;
}

/** Keeps a node from dropping everybody's tokens when refusals come in mass. */
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
