/** Calendar arithmetic on instants in a time zone: shifting, counting boundaries, truncating (AGG-2). */
import { isInstantMs } from "../value/instant.ts";
import { type TimeZone, toUtc } from "./time-zone.ts";

export const TIME_UNITS = [
  ...(["year", "quarter", "month", "week", "day"] as const),
  ...(["hour", "minute", "second", "millisecond"] as const),
];
export type TimeUnit = (typeof TIME_UNITS)[number];

/** 0 is Sunday. */
export type Weekday = 0 | 1 | 2 | 3 | 4 | 5 | 6;
export const WEEKDAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"] as const;

const DAY_MS = 86_400_000;
const FIXED_MS = { week: 7 * DAY_MS, day: DAY_MS, hour: 3_600_000, minute: 60_000, second: 1_000, millisecond: 1 };
const MONTHS = { year: 12, quarter: 3, month: 1 };
/** Bins are counted from 2000-01-01, a Saturday. */
const ANCHOR_YEAR = 2000;
const ANCHOR_MS = Date.UTC(ANCHOR_YEAR, 0, 1);

/** Adds `amount` units. Days and longer units keep the local time of day; in a month that is too short the last day is taken. */
export function addToDate(ms: number, unit: TimeUnit, amount: number, zone: TimeZone): number | undefined {
  if (unit === "hour" || unit === "minute" || unit === "second" || unit === "millisecond")
    return instantOrNothing(ms + amount * FIXED_MS[unit]);
  const local = ms + zone.offsetAt(ms);
  const moved = isMonths(unit) ? addMonths(local, amount * MONTHS[unit]) : local + amount * FIXED_MS[unit];
  return moved !== undefined && isInstantMs(moved) ? instantOrNothing(toUtc(zone, moved)) : undefined;
}

/** Counts the boundaries of the unit that lie between two instants; negative when `end` is the earlier one. */
export function countBoundaries(
  start: number,
  end: number,
  unit: TimeUnit,
  zone: TimeZone,
  weekStart: Weekday,
): number {
  if (unit === "hour" || unit === "minute" || unit === "second" || unit === "millisecond") {
    // Counts elapsed hours, whatever the clocks did in between; only the part of the offset below an hour moves the boundaries.
    const size = FIXED_MS[unit];
    const shift = zone.offsetAt(start) % size;
    return Math.floor((end + shift) / size) - Math.floor((start + shift) / size);
  }
  return boundaryOf(end, unit, zone, weekStart) - boundaryOf(start, unit, zone, weekStart);
}

/** Returns the start of the bin of `size` units in which an instant lies. */
export function truncateDate(ms: number, unit: TimeUnit, size: number, zone: TimeZone, weekStart: Weekday): number {
  if (unit === "hour" || unit === "minute" || unit === "second" || unit === "millisecond") {
    const bin = size * FIXED_MS[unit];
    const anchor = toUtc(zone, ANCHOR_MS);
    return anchor + Math.floor((ms - anchor) / bin) * bin;
  }
  const first = Math.floor(boundaryOf(ms, unit, zone, weekStart) / size) * size;
  const local = isMonths(unit) ? monthStart(first * MONTHS[unit]) : anchorOf(unit, weekStart) + first * FIXED_MS[unit];
  return toUtc(zone, local);
}

export function yearOf(ms: number, zone: TimeZone): number {
  return new Date(ms + zone.offsetAt(ms)).getUTCFullYear();
}

/** Returns the week of the year, 0 to 53: weeks begin on Sunday, and days before the first Sunday are in week 0. */
export function weekOf(ms: number, zone: TimeZone): number {
  const local = new Date(ms + zone.offsetAt(ms));
  const dayOfYear = Math.floor((local.getTime() - utcMs(local.getUTCFullYear(), 0, 1)) / DAY_MS);
  return Math.floor((dayOfYear + 7 - local.getUTCDay()) / 7);
}

function isMonths(unit: TimeUnit): unit is keyof typeof MONTHS {
  return unit === "year" || unit === "quarter" || unit === "month";
}

/** Returns the number, counted from 2000, of the year, quarter, month, week or day in which an instant lies in local time. */
function boundaryOf(
  ms: number,
  unit: "year" | "quarter" | "month" | "week" | "day",
  zone: TimeZone,
  weekStart: Weekday,
) {
  const local = ms + zone.offsetAt(ms);
  if (isMonths(unit)) {
    const date = new Date(local);
    return Math.floor(((date.getUTCFullYear() - ANCHOR_YEAR) * 12 + date.getUTCMonth()) / MONTHS[unit]);
  }
  return Math.floor((local - anchorOf(unit, weekStart)) / FIXED_MS[unit]);
}

/** Returns where day or week number 0 begins: 2000-01-01, or the first start of a week from that Saturday on. */
function anchorOf(unit: "week" | "day", weekStart: Weekday): number {
  const saturday = 6;
  return unit === "day" ? ANCHOR_MS : ANCHOR_MS + ((weekStart - saturday + 7) % 7) * DAY_MS;
}

function monthStart(monthsFromAnchor: number): number {
  const months = ANCHOR_YEAR * 12 + monthsFromAnchor;
  return utcMs(Math.floor(months / 12), ((months % 12) + 12) % 12, 1);
}

function addMonths(local: number, amount: number): number | undefined {
  const date = new Date(local);
  const months = date.getUTCFullYear() * 12 + date.getUTCMonth() + amount;
  const year = Math.floor(months / 12);
  if (!(year >= -1 && year <= 10_000)) return undefined;
  const month = months - year * 12;
  const lastDay = new Date(utcMs(year, month + 1, 0)).getUTCDate();
  const timeOfDay = ((local % DAY_MS) + DAY_MS) % DAY_MS;
  return utcMs(year, month, Math.min(date.getUTCDate(), lastDay)) + timeOfDay;
}

/** Unlike Date.UTC, takes the years 0 to 99 as they are. */
function utcMs(year: number, month: number, day: number): number {
  return new Date(0).setUTCFullYear(year, month, day);
}

function instantOrNothing(ms: number): number | undefined {
  return isInstantMs(ms) ? ms : undefined;
}
