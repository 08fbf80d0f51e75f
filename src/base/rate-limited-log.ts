import type { Log, LogFields } from "./log.ts";

/** After this long a subject may be logged again. */
const AGAIN_MS = 10 * 60_000;
/** Most lines in that time over all subjects, because whoever causes the lines can often invent subjects too. */
const LINES_MAX = 100;

/**
 * Logs warnings that others can cause as often as they like: one line per subject, then none for ten minutes; the next
 * line says how many were suppressed. Lines and memory are bounded.
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
