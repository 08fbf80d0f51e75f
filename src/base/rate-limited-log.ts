import type { Log, LogFields } from "./log.ts";

/** A subject is spoken of again after this long, should there be reason to. */
const AGAIN_MS = 10 * 60_000;
/** Lines in that time, whatever their subjects: whoever causes them can often make up subjects, too. */
const LINES_MAX = 100;

/**
 * Warns of what others cause as often as they like: once a subject, then not for ten minutes, with the number of times it
 * was kept back. Bounded in lines and in memory.
 */
export interface RateLimitedLog {
  warn(subject: string, message: string, fields?: LogFields): void;
}

export function createRateLimitedLog(log: Log, nowMs: () => number = () => performance.now()): RateLimitedLog {
  let sinceMs = nowMs();
  let keptBack = new Map<string, number>();
  let before = new Map<string, number>();
  return {
    warn(subject, message, fields = {}) {
      if (nowMs() - sinceMs > AGAIN_MS) {
        sinceMs = nowMs();
        before = keptBack;
        keptBack = new Map();
      }
      const known = keptBack.get(subject);
      if (known !== undefined) return void keptBack.set(subject, known + 1);
      if (keptBack.size >= LINES_MAX) return;
      keptBack.set(subject, 0);
      const repeated = before.get(subject) ?? 0;
      log.warn(message, repeated > 0 ? { ...fields, repeated } : fields);
    },
  };
}
