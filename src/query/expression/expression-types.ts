/** Aggregation expressions (AGG-2), compiled to closures. */

import type { Json, JsonObject } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import { badPipeline, below, type PipelinePath } from "./aggregate-faults.ts";

/** Computes a value from a document; undefined means missing. A faulty operand gives null at run time, never an error. */
export type Evaluate = (doc: JsonObject) => Json | undefined;

export interface Expression {
  readonly evaluate: Evaluate;
  /** Set where the value is the same for every document. */
  readonly literal?: Json;
  /** Set where the expression is a plain field path. */
  readonly path?: string;
}

/** Parses the operands of an operator, and counts expressions and levels against the limits. */
export interface ExpressionScope {
  parse(input: Json, where: PipelinePath): Expression;
  /** The scope one level further down. */
  deeper(where: PipelinePath): ExpressionScope;
  /** How many expressions were parsed. */
  nodes(): number;
  /** How many of the parsed expressions build arrays, documents or strings: these are the ones that can repeat a value. */
  composites(): number;
}

export type OperatorParser = (operand: Json, where: PipelinePath, scope: ExpressionScope) => Evaluate;

/** Parses positional arguments: an array, or one bare argument. */
export function parseArguments(
  operand: Json,
  where: PipelinePath,
  scope: ExpressionScope,
  min: number,
  max: number = min,
): Evaluate[] {
  const list = Array.isArray(operand) ? operand : [operand];
  if (list.length < min || list.length > max) {
    const most = max === Number.POSITIVE_INFINITY ? {} : { most: max };
    throw badPipeline(where, refusal("expression.arguments", { least: min, ...most, got: list.length }));
  }
  return list.map((part, index) => scope.parse(part, Array.isArray(operand) ? below(where, index) : where).evaluate);
}

/** Parses named arguments: an object that has no other keys than those listed. */
export function parseNamed<Required extends string, Optional extends string = never>(
  operand: Json,
  where: PipelinePath,
  required: readonly Required[],
  optional: readonly Optional[] = [],
): Record<Required, Json> & Partial<Record<Optional, Json>> {
  if (typeof operand !== "object" || operand === null || Array.isArray(operand))
    throw badPipeline(where, refusal("expression.named", { names: [...required, ...optional] }));
  const known: readonly string[] = [...required, ...optional];
  for (const key of Object.keys(operand))
    if (!known.includes(key)) throw badPipeline(below(where, key), refusal("expression.no_argument", { names: known }));
  for (const key of required)
    if (!Object.hasOwn(operand, key)) throw badPipeline(where, refusal("expression.needs", { key }));
  return operand as Record<Required, Json> & Partial<Record<Optional, Json>>;
}

export function tooDeep(where: PipelinePath) {
  return badPipeline(where, refusal("expression.levels"));
}

export function tooMany(where: PipelinePath) {
  return badPipeline(where, refusal("expression.many"));
}

/** false, 0, null and missing are false; everything else is true. */
export function isTruthy(value: Json | undefined): boolean {
  return value !== undefined && value !== null && value !== false && value !== 0;
}

/** A number as JSON can hold it: overflow is null. */
export function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
