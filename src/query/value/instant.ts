/**
 * Instants as records hold them: an object of exactly one key `$date` (API-7). Such an object with a well-formed
 * value is a date in every comparison; with any other value it is an ordinary object.
 */
import type { Json, JsonObject } from "../../protocol/json.ts";

/** 0000-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z: the years that RFC 3339 can write. */
const MIN_MS = -62_167_219_200_000;
const MAX_MS = 253_402_300_799_999;

const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

/**
 * Returns the Unix milliseconds of an RFC 3339 § 5.6 date-time, or undefined. Digits beyond the millisecond are cut off; leap
 * seconds (`:60`) are not accepted.
 */
export function parseRfc3339(text: string): number | undefined {
  const found = RFC3339.exec(text);
  if (!found) return undefined;
  const [, year, month, day, hour, minute, second, fraction, sign, offsetHour, offsetMinute] = found;
  const y = Number(year);
  const mo = Number(month);
  const d = Number(day);
  const h = Number(hour);
  const mi = Number(minute);
  const s = Number(second);
  if (mo < 1 || mo > 12 || d < 1 || d > daysInMonth(y, mo) || h > 23 || mi > 59 || s > 59) return undefined;
  const milli = fraction === undefined ? 0 : Number(fraction.slice(0, 3).padEnd(3, "0"));
  let ms = utcMs(y, mo, d) + ((h * 60 + mi) * 60 + s) * 1000 + milli;
  if (sign !== undefined) {
    const oh = Number(offsetHour);
    const om = Number(offsetMinute);
    if (oh > 23 || om > 59) return undefined;
    ms -= (sign === "-" ? -1 : 1) * (oh * 60 + om) * 60_000;
  }
  return isInstantMs(ms) ? ms : undefined;
}

const CANONICAL = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;

/** Whether a `$date` already holds the canonical form: what `toInstant` makes of its instant. */
export function isCanonicalInstant(date: unknown): boolean {
  if (typeof date !== "string" || date.length !== 24) return false;
  if (CANONICAL.test(date)) return true; // every month has these days
  const ms = parseRfc3339(date);
  return ms !== undefined && toInstant(ms).$date === date;
}

/** Whether Unix milliseconds are whole and within the years 0000 to 9999. */
export function isInstantMs(ms: number): boolean {
  return Number.isInteger(ms) && ms >= MIN_MS && ms <= MAX_MS;
}

/**
 * Returns the Unix milliseconds of the value inside `$date`: an RFC 3339 string or whole Unix milliseconds; otherwise undefined.
 */
export function parseInstant(value: unknown): number | undefined {
  if (typeof value === "string") return parseRfc3339(value);
  return typeof value === "number" && isInstantMs(value) ? value : undefined;
}

/** Returns the Unix milliseconds of a well-formed `{$date}` value; undefined for everything else. */
export function instantOf(value: Json | undefined): number | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  if (!isDateShaped(value)) return undefined;
  return parseInstant(value["$date"]);
}

/** Whether an object has exactly one key and that is `$date`, well-formed or not. */
export function isDateShaped(value: JsonObject): boolean {
  let found = false;
  for (const key in value) {
    if (key !== "$date") return false;
    found = true;
  }
  return found;
}

/** Returns the canonical form, UTC with milliseconds. `ms` must satisfy `isInstantMs`. */
export function toInstant(ms: number): { $date: string } {
  return { $date: new Date(ms).toISOString() };
}

function utcMs(year: number, month: number, day: number): number {
  // Date.UTC reads the years 0 to 99 as 1900 to 1999, so this counts from 400 years later, a whole Gregorian cycle.
  return Date.UTC(year + 400, month - 1, day) - 400 * 365.2425 * 86_400_000;
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}
