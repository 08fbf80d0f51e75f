/** Time zones by IANA name or UTC offset, read through Intl. Offsets that were looked up are kept. */
export interface TimeZone {
  /** Milliseconds to add to UTC for the local time at that instant. */
  offsetAt(utcMs: number): number;
}

const DAY_MS = 86_400_000;
/** How many days of a zone have their offset kept. */
const MAX_DAYS = 8_192;
const MAX_ZONES = 1_000;

export const UTC: TimeZone = { offsetAt: () => 0 };

const zones = new Map<string, TimeZone>();

/** The zone of a name (`Europe/Berlin`, `UTC`) or offset (`+05:30`, `-0800`, `+03`); undefined if there is none. */
export function parseTimeZone(name: string): TimeZone | undefined {
  if (name === "UTC" || name === "GMT" || name === "Z") return UTC;
  const offset = /^([+-])(\d{2})(?::?(\d{2}))?$/.exec(name);
  if (offset) return fixedZone(offset[1] === "-" ? -1 : 1, Number(offset[2]), Number(offset[3] ?? 0));
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name)) return undefined;
  const known = zones.get(name);
  if (known) return known;
  const zone = intlZone(name);
  if (zone && zones.size < MAX_ZONES) zones.set(name, zone);
  return zone;
}

/**
 * Returns the instant of a local time. A time that a change of clocks skips maps to an instant after the change; one that occurs
 * twice maps to its first occurrence.
 */
export function toUtc(zone: TimeZone, localMs: number): number {
  const before = localMs - zone.offsetAt(localMs - DAY_MS);
  const after = localMs - zone.offsetAt(localMs + DAY_MS);
  if (before === after) return before;
  const valid = [before, after].filter((utc) => utc + zone.offsetAt(utc) === localMs);
  return valid.length === 0 ? before : Math.min(...valid);
}

function fixedZone(sign: number, hours: number, minutes: number): TimeZone | undefined {
  if (hours > 23 || minutes > 59) return undefined;
  const offset = sign * (hours * 60 + minutes) * 60_000;
  return { offsetAt: () => offset };
}

function intlZone(name: string): TimeZone | undefined {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      hourCycle: "h23",
      era: "short",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
  // The offset of each UTC day; undefined for a day that begins and ends with different offsets.
  const offsetByDay = new Map<number, number | undefined>();
  return {
    offsetAt(utcMs) {
      const day = Math.floor(utcMs / DAY_MS);
      if (!offsetByDay.has(day)) {
        if (offsetByDay.size >= MAX_DAYS) offsetByDay.clear();
        const first = lookUp(format, day * DAY_MS);
        offsetByDay.set(day, lookUp(format, (day + 1) * DAY_MS) === first ? first : undefined);
      }
      return offsetByDay.get(day) ?? lookUp(format, utcMs);
    },
  };
}

function lookUp(format: Intl.DateTimeFormat, utcMs: number): number {
  const fields: Partial<Record<Intl.DateTimeFormatPartTypes, string>> = {};
  for (const { type, value } of format.formatToParts(utcMs)) fields[type] = value;
  const year = fields.era === "BC" ? 1 - Number(fields.year) : Number(fields.year);
  const local = new Date(0);
  local.setUTCFullYear(year, Number(fields.month) - 1, Number(fields.day));
  local.setUTCHours(Number(fields.hour), Number(fields.minute), Number(fields.second), 0);
  return local.getTime() - Math.floor(utcMs / 1000) * 1000;
}
