/**
 * Date operators. An operand that is no instant, or a result outside the years 0000 to 9999, gives null. Unit, time zone and
 * similar arguments must be literals.
 */
import type { Json } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import { instantOf, isInstantMs, toInstant } from "../value/instant.ts";
import { badPipeline, below, type PipelinePath } from "./aggregate-faults.ts";
import {
  addToDate,
  countBoundaries,
  TIME_UNITS,
  type TimeUnit,
  truncateDate,
  WEEKDAYS,
  type Weekday,
  weekOf,
  yearOf,
} from "./calendar.ts";
import { type Evaluate, type OperatorParser, parseArguments, parseNamed } from "./expression-types.ts";
import { parseTimeZone, type TimeZone, UTC } from "./time-zone.ts";

export const DATE_OPERATORS: readonly [string, OperatorParser][] = [
  ["$dateAdd", parseDateAdd],
  ["$dateDiff", parseDateDiff],
  ["$dateTrunc", parseDateTrunc],
  ["$year", datePart(yearOf)],
  ["$week", datePart(weekOf)],
];

function parseDateAdd(...[operand, where, scope]: Parameters<OperatorParser>): Evaluate {
  const named = parseNamed(operand, where, ["startDate", "unit", "amount"], ["timezone"]);
  const start = scope.parse(named.startDate, below(where, "startDate")).evaluate;
  const amount = scope.parse(named.amount, below(where, "amount")).evaluate;
  const unit = parseUnit(named.unit, below(where, "unit"));
  const zone = parseZone(named.timezone, below(where, "timezone"));
  return (doc) => {
    const ms = instantOf(start(doc));
    const count = amount(doc);
    if (ms === undefined || typeof count !== "number" || !Number.isSafeInteger(count)) return null;
    return toDate(addToDate(ms, unit, count, zone));
  };
}

function parseDateDiff(...[operand, where, scope]: Parameters<OperatorParser>): Evaluate {
  const named = parseNamed(operand, where, ["startDate", "endDate", "unit"], ["timezone", "startOfWeek"]);
  const start = scope.parse(named.startDate, below(where, "startDate")).evaluate;
  const end = scope.parse(named.endDate, below(where, "endDate")).evaluate;
  const unit = parseUnit(named.unit, below(where, "unit"));
  const zone = parseZone(named.timezone, below(where, "timezone"));
  const weekStart = parseWeekStart(named.startOfWeek, below(where, "startOfWeek"));
  return (doc) => {
    const from = instantOf(start(doc));
    const to = instantOf(end(doc));
    return from === undefined || to === undefined ? null : countBoundaries(from, to, unit, zone, weekStart);
  };
}

function parseDateTrunc(...[operand, where, scope]: Parameters<OperatorParser>): Evaluate {
  const named = parseNamed(operand, where, ["date", "unit"], ["binSize", "timezone", "startOfWeek"]);
  const date = scope.parse(named.date, below(where, "date")).evaluate;
  const unit = parseUnit(named.unit, below(where, "unit"));
  const zone = parseZone(named.timezone, below(where, "timezone"));
  const weekStart = parseWeekStart(named.startOfWeek, below(where, "startOfWeek"));
  const { binSize = 1 } = named;
  if (typeof binSize !== "number" || !Number.isSafeInteger(binSize) || binSize < 1)
    throw badPipeline(below(where, "binSize"), refusal("expression.positive"));
  return (doc) => {
    const ms = instantOf(date(doc));
    return ms === undefined ? null : toDate(truncateDate(ms, unit, binSize, zone, weekStart));
  };
}

/** `{"$year": <date>}` or `{"$year": {"date": <date>, "timezone": "…"}}`. */
function datePart(read: (ms: number, zone: TimeZone) => number): OperatorParser {
  return (operand, where, scope) => {
    const named =
      typeof operand === "object" && operand !== null && !Array.isArray(operand) && Object.hasOwn(operand, "date")
        ? parseNamed(operand, where, ["date"], ["timezone"])
        : undefined;
    const [date] = named
      ? [scope.parse(named.date, below(where, "date")).evaluate]
      : parseArguments(operand, where, scope, 1);
    const zone = parseZone(named?.timezone, below(where, "timezone"));
    return (doc) => {
      const ms = instantOf(date?.(doc));
      return ms === undefined ? null : read(ms, zone);
    };
  };
}

function toDate(ms: number | undefined): Json {
  return ms !== undefined && isInstantMs(ms) ? toInstant(ms) : null;
}

function parseUnit(value: Json, where: PipelinePath): TimeUnit {
  const unit = TIME_UNITS.find((name) => name === value);
  if (!unit) throw badPipeline(where, refusal("expression.one_of", { values: TIME_UNITS }));
  return unit;
}

function parseZone(value: Json | undefined, where: PipelinePath): TimeZone {
  if (value === undefined) return UTC;
  const zone = typeof value === "string" ? parseTimeZone(value) : undefined;
  if (!zone) throw badPipeline(where, refusal("expression.zone"));
  return zone;
}

/** Takes full names or their first three letters, in any case; Sunday where absent. */
function parseWeekStart(value: Json | undefined, where: PipelinePath): Weekday {
  if (value === undefined) return 0;
  const name = typeof value === "string" ? value.toLowerCase() : "";
  const day = WEEKDAYS.findIndex((weekday) => weekday === name || weekday.slice(0, 3) === name);
  if (day < 0) throw badPipeline(where, refusal("expression.one_of", { values: WEEKDAYS }));
  return day as Weekday;
}
