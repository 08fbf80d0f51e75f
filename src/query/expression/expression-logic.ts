/** Conditions and comparisons. Comparisons use the whole value order, across types; null and missing are equal. */

import { refusal } from "../../protocol/refusals.ts";
import { compareValues } from "../value/value-order.ts";
import { badPipeline, below } from "./aggregate-faults.ts";
import { type Evaluate, isTruthy, type OperatorParser, parseArguments, parseNamed } from "./expression-types.ts";

export const LOGIC_OPERATORS: readonly [string, OperatorParser][] = [
  ["$cond", parseCond],
  ["$switch", parseSwitch],
  ["$ifNull", (operand, where, scope) => ifNull(parseArguments(operand, where, scope, 2, Number.POSITIVE_INFINITY))],
  ["$eq", comparison((order) => order === 0)],
  ["$ne", comparison((order) => order !== 0)],
  ["$gt", comparison((order) => order > 0)],
  ["$gte", comparison((order) => order >= 0)],
  ["$lt", comparison((order) => order < 0)],
  ["$lte", comparison((order) => order <= 0)],
  ["$cmp", comparison(Math.sign)],
];

function comparison(answer: (order: number) => boolean | number): OperatorParser {
  return (operand, where, scope) => {
    const [left, right] = parseArguments(operand, where, scope, 2);
    return (doc) => answer(compareValues(left?.(doc), right?.(doc)));
  };
}

function parseCond(...[operand, where, scope]: Parameters<OperatorParser>): Evaluate {
  const named = Array.isArray(operand) ? undefined : parseNamed(operand, where, ["if", "then", "else"]);
  const [condition, then, otherwise] = named
    ? (["if", "then", "else"] as const).map((name) => scope.parse(named[name], below(where, name)).evaluate)
    : parseArguments(operand, where, scope, 3);
  return (doc) => (isTruthy(condition?.(doc)) ? then?.(doc) : otherwise?.(doc));
}

/** Gives the first branch whose case is true; without one, `default`; without that, null. */
function parseSwitch(...[operand, where, scope]: Parameters<OperatorParser>): Evaluate {
  const named = parseNamed(operand, where, ["branches"], ["default"]);
  const { branches } = named;
  const branchesAt = below(where, "branches");
  if (!Array.isArray(branches) || branches.length === 0) throw badPipeline(branchesAt, refusal("expression.branches"));
  const parsed = branches.map((branch, index) => {
    const at = below(branchesAt, index);
    const parts = parseNamed(branch, at, ["case", "then"]);
    return {
      holds: scope.parse(parts.case, below(at, "case")).evaluate,
      result: scope.parse(parts.then, below(at, "then")).evaluate,
    };
  });
  const otherwise =
    named.default === undefined ? () => null : scope.parse(named.default, below(where, "default")).evaluate;
  return (doc) => {
    for (const { holds, result } of parsed) if (isTruthy(holds(doc))) return result(doc);
    return otherwise(doc);
  };
}

/** Gives the first operand that is neither null nor missing, else the last. */
function ifNull(parts: readonly Evaluate[]): Evaluate {
  return (doc) => {
    let value: ReturnType<Evaluate>;
    for (const part of parts) {
      value = part(doc);
      if (value !== undefined && value !== null) break;
    }
    return value;
  };
}
