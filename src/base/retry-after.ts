const SECOND_MS = 1_000;
const HOUR_MS = 60 * 60_000;

/**
 * Milliseconds of a Retry-After header, in seconds or as a date. At least a second, so that nobody can have us ask without a
 * pause, and at most an hour; undefined for what is neither.
 */
export function retryAfterMs(header: string | null | undefined, nowMs: number): number | undefined {
  if (!header) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, SECOND_MS), HOUR_MS);
}
