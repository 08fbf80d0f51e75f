/** Parses expressions: paths, literals, nested documents and arrays, and operators. An operator is the only key of its object. */

import type { Json, JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { refusal } from "../../protocol/refusals.ts";
import { canonicalInstants } from "../value/canonical-instants.ts";
import { isDateShaped, parseInstant } from "../value/instant.ts";
import { badPipeline, below, type PipelinePath } from "./aggregate-faults.ts";
import { DATE_OPERATORS } from "./expression-dates.ts";
import { LOGIC_OPERATORS } from "./expression-logic.ts";
import { NUMBER_OPERATORS } from "./expression-numbers.ts";
import { parseFieldExpression } from "./expression-path.ts";
import { STRING_OPERATORS } from "./expression-strings.ts";
import {
  type Evaluate,
  type Expression,
  type ExpressionScope,
  type OperatorParser,
  tooDeep,
  tooMany,
} from "./expression-types.ts";
import { checkOutputName, setField } from "./output-field.ts";

const OPERATORS: ReadonlyMap<string, OperatorParser> = new Map([
  ...NUMBER_OPERATORS,
  ...STRING_OPERATORS,
  ...LOGIC_OPERATORS,
  ...DATE_OPERATORS,
]);

/** A scope that counts the expressions of one pipeline. */
export function createExpressionScope(): ExpressionScope {
  let nodes = 0;
  let composites = 0;
  const scopeAt = (depth: number): ExpressionScope => ({
    parse(input, where) {
      if (++nodes > LIMITS.expressionNodes) throw tooMany(where);
      if (typeof input === "object" && input !== null) composites++;
      return parseExpression(input, where, this);
    },
    deeper(where) {
      if (depth === LIMITS.expressionDepth) throw tooDeep(where);
      return scopeAt(depth + 1);
    },
    nodes: () => nodes,
    composites: () => composites,
  });
  return scopeAt(1);
}

function parseExpression(input: Json, where: PipelinePath, scope: ExpressionScope): Expression {
  if (typeof input === "string" && input.startsWith("$")) return parseFieldExpression(input, where);
  if (typeof input !== "object" || input === null) return literal(input);
  const inner = scope.deeper(where);
  if (Array.isArray(input)) return parseArray(input, where, inner);
  if (isDateShaped(input)) {
    if (parseInstant(input["$date"]) === undefined)
      throw badPipeline(below(where, "$date"), refusal("expression.date"));
    return literal(canonicalInstants(input));
  }
  const keys = Object.keys(input);
  const operator = keys.find((key) => key.startsWith("$"));
  if (operator === undefined) return parseDocument(input, where, inner);
  const at = below(where, operator);
  if (keys.length > 1) throw badPipeline(at, refusal("expression.alone"));
  return parseOperator(operator, input[operator] as Json, at, inner);
}

function literal(value: Json): Expression {
  return { literal: value, evaluate: () => value };
}

function parseOperator(operator: string, operand: Json, where: PipelinePath, scope: ExpressionScope): Expression {
  if (operator === "$literal") return literal(canonicalInstants(operand));
  const parser = OPERATORS.get(operator);
  if (!parser) throw badPipeline(where, refusal("expression.none", { operators: [...OPERATORS.keys()] }));
  return { evaluate: parser(operand, where, scope) };
}

/** Missing elements become null, so that the others keep their positions. */
function parseArray(parts: readonly Json[], where: PipelinePath, scope: ExpressionScope): Expression {
  const elements = parts.map((part, index) => scope.parse(part, below(where, index)));
  if (elements.every((element) => element.literal !== undefined))
    return literal(elements.map((element) => element.literal as Json));
  const evaluates = elements.map(({ evaluate }) => evaluate);
  return { evaluate: (doc) => evaluates.map((evaluate) => evaluate(doc) ?? null) };
}

/** Missing fields are left out. */
function parseDocument(document: JsonObject, where: PipelinePath, scope: ExpressionScope): Expression {
  const fields = Object.entries(document).map(([name, part]): [string, Evaluate] => {
    const at = below(where, name);
    return [checkOutputName(name, at), scope.parse(part, at).evaluate];
  });
  return {
    evaluate(doc) {
      const result: JsonObject = {};
      for (const [name, evaluate] of fields) {
        const value = evaluate(doc);
        if (value !== undefined) setField(result, name, value);
      }
      return result;
    },
  };
}
