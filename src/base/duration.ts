const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Milliseconds of a duration as people write it: `250ms`, `30s`, `5m`, `24h`, `1m30s`. A bare number has no unit and is
 * refused (undefined), as is anything negative or above 2^53.
 */
export function parseDurationMs(text: string): number | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(text)) return undefined;
  let totalMs = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    totalMs += Number(amount) * (UNIT_MS[unit as string] as number);
  }
  return Number.isSafeInteger(Math.round(totalMs)) ? Math.round(totalMs) : undefined;
}
