import { Cron } from "croner";

export interface CronSpec {
  readonly cron: string;
  /** IANA; UTC unless given. */
  readonly tz?: string;
}

/** When a cron trigger fires. Moments are Unix milliseconds. */
export interface CronSchedule {
  /** Undefined when there is no occurrence any more. */
  nextAfter(ms: number): number | undefined;
}

const NICKNAME = /^@[a-z]+$/i;
const FIVE_OR_SIX = /^\s*(\S+\s+){4,5}\S+\s*$/;
/** Reading an expression takes a millisecond, and a record is read whenever one of its figures has moved. */
const KEPT_SCHEDULES = 2_000;
const scheduleBySpec = new Map<string, CronSchedule | undefined>();

/**
 * Reads a cron expression of five fields (six with seconds) or a nickname such as `@daily`. Where day of month and day
 * of week are both set either of them counts (POSIX). A fixed time that daylight saving skips comes once after the gap,
 * one that it repeats comes once; wildcards run through both. Undefined for what is no expression.
 */
export function readCron({ cron, tz = "UTC" }: CronSpec): CronSchedule | undefined {
  const key = `${tz}\n${cron}`;
  if (scheduleBySpec.has(key)) return scheduleBySpec.get(key);
  const schedule = parse(cron, tz);
  if (scheduleBySpec.size >= KEPT_SCHEDULES) scheduleBySpec.delete(scheduleBySpec.keys().next().value as string);
  scheduleBySpec.set(key, schedule);
  return schedule;
}

function parse(cron: string, timezone: string): CronSchedule | undefined {
  if (!NICKNAME.test(cron) && !FIVE_OR_SIX.test(cron)) return undefined;
  try {
    const parsed = new Cron(cron, { timezone, paused: true, domAndDow: false, fixedTimeRule: "no-wildcard" });
    /** The last question and its answer: it is the answer for every moment between the two. */
    let asked = { fromMs: Number.POSITIVE_INFINITY, nextMs: 0 as number | undefined };
    const schedule: CronSchedule = {
      nextAfter(ms) {
        if (ms >= asked.fromMs && (asked.nextMs === undefined || ms < asked.nextMs)) return asked.nextMs;
        const nextMs = parsed.nextRun(new Date(ms))?.getTime();
        asked = { fromMs: ms, nextMs: nextMs !== undefined && nextMs > ms ? nextMs : undefined };
        return asked.nextMs;
      },
    };
    schedule.nextAfter(Date.UTC(2000, 0, 1)); // an unknown zone is noticed when it is first used
    return schedule;
  } catch {
    return undefined;
  }
}
