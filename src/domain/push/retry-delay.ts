const FIRST_MS = 1_000;
const MAX_MS = 5 * 60_000;

/** How long to wait before the next attempt: doubled each time, spread so that a crowd does not come back as one. */
export function retryDelayMs(attempts: number): number {
  const delayMs = Math.min(MAX_MS, FIRST_MS * 2 ** Math.min(attempts, 20));
  return Math.round(delayMs * (1 + Math.random() / 3));
}
