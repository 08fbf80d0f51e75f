import { Cron } from "croner";

export interface CronSpec {
  readonly cron: string;
  /** IANA; UTC unless given. */
  readonly tz?: string;
}

/** When a cron trigger fires: strictly after a moment, in Unix milliseconds. */
export interface CronSchedule {
  /** Undefined when there is no occurrence any more. */
  nextAfter(ms: number): number | undefined;
}

const NICKNAME = /^@[a-z]+$/i;
const FIVE_OR_SIX = /^\s*(\S+\s+){4,5}\S+\s*$/;

/**
 * Reads a cron expression of five fields (six with seconds) or a nickname such as `@daily`. Where day of month and day
 * of week are both set either of them counts (POSIX). A fixed time that daylight saving skips comes once after the gap,
 * one that it repeats comes once; wildcards run through both. Undefined for what is no expression.
 */
export function readCron({ cron, tz = "UTC" }: CronSpec): CronSchedule | undefined {
  if (!NICKNAME.test(cron) && !FIVE_OR_SIX.test(cron)) return undefined;
  try {
    const parsed = new Cron(cron, { timezone: tz, paused: true, domAndDow: false, fixedTimeRule: "no-wildcard" });
    const schedule: CronSchedule = {
      nextAfter(ms) {
        const next = parsed.nextRun(new Date(ms))?.getTime();
        return next !== undefined && next > ms ? next : undefined;
      },
    };
    schedule.nextAfter(0); // an unknown zone is noticed when it is first used
    return schedule;
  } catch {
    return undefined;
  }
}
