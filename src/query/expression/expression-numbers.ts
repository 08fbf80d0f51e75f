/** Arithmetic. A null, missing or wrongly typed operand, a division by zero and an overflow all give null. */
import type { Json } from "../../protocol/json.ts";
import { instantOf, isInstantMs, toInstant } from "../value/instant.ts";
import { type Evaluate, finite, type OperatorParser, parseArguments } from "./expression-types.ts";

export const NUMBER_OPERATORS: readonly [string, OperatorParser][] = [
  ["$add", (operand, where, scope) => add(parseArguments(operand, where, scope, 0, Number.POSITIVE_INFINITY))],
  ["$subtract", (operand, where, scope) => subtract(parseArguments(operand, where, scope, 2))],
  [
    "$multiply",
    (operand, where, scope) => multiply(parseArguments(operand, where, scope, 0, Number.POSITIVE_INFINITY)),
  ],
  ["$divide", (operand, where, scope) => divide(parseArguments(operand, where, scope, 2))],
  ["$abs", (operand, where, scope) => abs(parseArguments(operand, where, scope, 1))],
  ["$round", (operand, where, scope) => round(parseArguments(operand, where, scope, 1, 2))],
];

/** Adds numbers, and at most one date, which the numbers shift by milliseconds. */
function add(parts: readonly Evaluate[]): Evaluate {
  return (doc) => {
    let sum = 0;
    let date: number | undefined;
    for (const part of parts) {
      const value = part(doc);
      if (typeof value === "number") sum += value;
      else {
        const ms = instantOf(value);
        if (ms === undefined || date !== undefined) return null;
        date = ms;
      }
    }
    return date === undefined ? finite(sum) : toDate(date + sum);
  };
}

/** Subtracts a number from a number, a date from a date (giving milliseconds), or milliseconds from a date. */
function subtract([left, right]: readonly Evaluate[]): Evaluate {
  return (doc) => {
    const a = left?.(doc);
    const b = right?.(doc);
    if (typeof a === "number" && typeof b === "number") return finite(a - b);
    const from = instantOf(a);
    if (from === undefined) return null;
    if (typeof b === "number") return toDate(from - b);
    const to = instantOf(b);
    return to === undefined ? null : from - to;
  };
}

function multiply(parts: readonly Evaluate[]): Evaluate {
  return (doc) => {
    let product = 1;
    for (const part of parts) {
      const value = part(doc);
      if (typeof value !== "number") return null;
      product *= value;
    }
    return finite(product);
  };
}

function divide([left, right]: readonly Evaluate[]): Evaluate {
  return (doc) => {
    const a = left?.(doc);
    const b = right?.(doc);
    return typeof a === "number" && typeof b === "number" && b !== 0 ? finite(a / b) : null;
  };
}

function abs([operand]: readonly Evaluate[]): Evaluate {
  return (doc) => {
    const value = operand?.(doc);
    return typeof value === "number" ? Math.abs(value) : null;
  };
}

function round([operand, decimals]: readonly Evaluate[]): Evaluate {
  return (doc) => {
    const value = operand?.(doc);
    const digits = decimals === undefined ? 0 : decimals(doc);
    if (typeof value !== "number" || typeof digits !== "number") return null;
    if (!Number.isInteger(digits) || digits < -20 || digits > 100) return null;
    return finite(roundHalfEven(value, digits));
  };
}

/** Rounds the shortest decimal form of a number, half to even: 2.345 to two decimals is 2.34, as people would write it. */
function roundHalfEven(value: number, decimals: number): number {
  const [, sign = "", whole = "0", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value)) ?? [];
  const digits = whole + fraction;
  // The value is 0.<digits> times ten to the power `point`.
  const point = whole.length + Number(exponent);
  const kept = point + decimals;
  if (kept >= digits.length) return value;
  if (kept < 0) return sign === "-" ? -0 : 0;
  const head = digits.slice(0, kept);
  const rest = digits.slice(kept);
  const half = `5${"0".repeat(rest.length - 1)}`;
  const up = rest > half || (rest === half && Number(head.at(-1) ?? 0) % 2 === 1);
  const rounded = BigInt(head || "0") + (up ? 1n : 0n);
  return Number(`${sign}${rounded}e${-decimals}`);
}

function toDate(ms: number): Json {
  const whole = Math.trunc(ms);
  return isInstantMs(whole) ? toInstant(whole) : null;
}
