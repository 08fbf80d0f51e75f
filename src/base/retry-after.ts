const SECOND_MS = 1_000;
const HOUR_MS = 60 * 60_000;

/**
 * Reads a Retry-After header, given in seconds or as a date, as milliseconds. The result is at least a second, so that
 * nobody can make us ask without a pause, and at most an hour; undefined for anything else.
 */
export function retryAfterMs(header: string | null | undefined, nowMs: number): number | undefined {
  if (!header) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, SECOND_MS), HOUR_MS);
}
