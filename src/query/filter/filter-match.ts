/** The exact matcher: compiles a filter to closures that allocate nothing per document, with MongoDB's semantics (QUERY-2). */
import type { Json, JsonObject } from "../../protocol/json.ts";
import { compilePathTest, isSubdocument, type ValueTest } from "../value/field-path.ts";
import { instantOf } from "../value/instant.ts";
import { compareValues, equalValues, TYPE_CLASS, typeClassOf } from "../value/value-order.ts";
import type { ComparisonOperator, Condition, Filter, TypeName } from "./filter-types.ts";
import { regexStepCount } from "./regex-steps.ts";

type Matcher = (value: Json) => boolean;

/** About how long a step of the matcher takes: one character that a pattern has seen the like of (regex-steps.ts). */
export const STEP_NS = 10;

/**
 * Called before work that a value can make long, with how many steps it may take at most. It throws where that is too much: once
 * begun, nothing can interrupt a pattern.
 */
export type Spend = (steps: number) => void;

const UNBOUNDED: Spend = () => {};

/** Compiles a filter to a predicate over documents. The predicate never throws on JSON, but for what `spend` throws. */
export function compileFilter(filter: Filter, spend: Spend = UNBOUNDED): (doc: JsonObject) => boolean {
  return compileMatcher(filter, spend);
}

function compileMatcher(filter: Filter, spend: Spend): Matcher {
  switch (filter.kind) {
    case "and":
      return every(filter.filters.map((each) => compileMatcher(each, spend)));
    case "or":
      return any(filter.filters.map((each) => compileMatcher(each, spend)));
    case "not": {
      const match = compileMatcher(filter.filter, spend);
      return (value) => !match(value);
    }
    case "field": {
      // $exists and the array operators test the value at the path itself, not the elements of an array there.
      const { op } = filter.condition;
      const whole = op === "exists" || op === "size" || op === "elemMatchDocument" || op === "elemMatchValue";
      return compilePathTest(filter.path, compileCondition(filter.condition, spend), !whole);
    }
  }
}

function every(matchers: readonly Matcher[]): Matcher {
  const [first, second] = matchers;
  if (first === undefined) return () => true;
  if (second === undefined) return first;
  if (matchers.length === 2) return (value) => first(value) && second(value);
  return (value) => {
    for (let i = 0; i < matchers.length; i++) if (!(matchers[i] as Matcher)(value)) return false;
    return true;
  };
}

function any(matchers: readonly Matcher[]): Matcher {
  return (value) => {
    for (let i = 0; i < matchers.length; i++) if ((matchers[i] as Matcher)(value)) return true;
    return false;
  };
}

function compileCondition(condition: Condition, spend: Spend): ValueTest {
  switch (condition.op) {
    case "eq":
      return compileEquals(condition.value);
    case "gt":
    case "gte":
    case "lt":
    case "lte":
      return compileComparison(condition.op, condition.value);
    case "in":
      return compileIn(condition.values, spend);
    case "exists":
      return (value) => value !== undefined;
    case "type":
      return compileType(condition.types);
    case "size":
      return (value) => Array.isArray(value) && value.length === condition.size;
    case "mod":
      return compileMod(condition.divisor, condition.remainder);
    case "regex": {
      const { regex } = condition;
      const stepsOn = regexStepCount(regex);
      return (value) => {
        if (typeof value !== "string") return false;
        spend(stepsOn(value.length));
        return regex.test(value);
      };
    }
    case "elemMatchDocument": {
      const match = compileMatcher(condition.filter, spend);
      return compileElemMatch((element) => (Array.isArray(element) || isSubdocument(element)) && match(element));
    }
    case "elemMatchValue":
      return compileElemMatch(compileMatcher(condition.filter, spend));
  }
}

function compileElemMatch(match: Matcher): ValueTest {
  return (value) => {
    if (!Array.isArray(value)) return false;
    for (let i = 0; i < value.length; i++) if (match(value[i] as Json)) return true;
    return false;
  };
}

function isScalar(value: Json): value is string | number | boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

function compileEquals(operand: Json): ValueTest {
  if (isScalar(operand)) return (value) => value === operand;
  if (operand === null) return (value) => value === null || value === undefined;
  const instant = instantOf(operand);
  if (instant !== undefined) return (value) => instantOf(value) === instant;
  return (value) => typeof value === "object" && value !== null && equalValues(value, operand);
}

function compileIn(operands: readonly Json[], spend: Spend): ValueTest {
  const scalars = new Set<Json | undefined>(operands.filter(isScalar));
  const others = operands.filter((operand) => !isScalar(operand)).map(compileEquals);
  if (others.length === 0) return (value) => scalars.has(value);
  return (value) => {
    if (scalars.has(value)) return true;
    spend(others.length);
    for (let i = 0; i < others.length; i++) if ((others[i] as ValueTest)(value)) return true;
    return false;
  };
}

/**
 * A comparison considers only values of the operand's own class. Null equals null and missing, and is never more or less than
 * anything.
 */
function compileComparison(op: ComparisonOperator, operand: Json): ValueTest {
  if (typeof operand === "number") return compileNumberComparison(op, operand);
  const accepts = acceptOrder(op);
  const instant = instantOf(operand);
  if (instant !== undefined)
    return (value) => {
      const other = instantOf(value);
      return other !== undefined && accepts(other - instant);
    };
  const operandClass = typeClassOf(operand);
  if (operandClass === TYPE_CLASS.null) {
    const orEqual = accepts(0);
    return (value) => orEqual && (value === null || value === undefined);
  }
  return (value) => typeClassOf(value) === operandClass && accepts(compareValues(value, operand));
}

function compileNumberComparison(op: ComparisonOperator, operand: number): ValueTest {
  switch (op) {
    case "gt":
      return (value) => typeof value === "number" && value > operand;
    case "gte":
      return (value) => typeof value === "number" && value >= operand;
    case "lt":
      return (value) => typeof value === "number" && value < operand;
    case "lte":
      return (value) => typeof value === "number" && value <= operand;
  }
}

function acceptOrder(op: ComparisonOperator): (order: number) => boolean {
  switch (op) {
    case "gt":
      return (order) => order > 0;
    case "gte":
      return (order) => order >= 0;
    case "lt":
      return (order) => order < 0;
    case "lte":
      return (order) => order <= 0;
  }
}

/** JSON has one kind of number: `int` is a safe integer, `double` every other number. */
function compileType(types: readonly TypeName[]): ValueTest {
  const classes = new Set<number>();
  for (const type of types) {
    if (type === "bool") classes.add(TYPE_CLASS.boolean);
    else if (type !== "int" && type !== "double") classes.add(TYPE_CLASS[type]);
  }
  const int = types.includes("int");
  const double = types.includes("double");
  return (value) => {
    if (value === undefined) return false;
    if (typeof value === "number" && (Number.isSafeInteger(value) ? int : double)) return true;
    return classes.has(typeClassOf(value));
  };
}

/** Fractions are cut off first; numbers beyond 64-bit integers match nothing. */
function compileMod(divisor: number, remainder: number): ValueTest {
  return (value) => {
    if (typeof value !== "number" || value >= 2 ** 63 || value < -(2 ** 63)) return false;
    return Math.trunc(value) % divisor === remainder;
  };
}
