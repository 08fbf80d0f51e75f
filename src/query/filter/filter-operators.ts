/** The operators of a field's condition: checks their operands and builds the nodes of the parsed filter. */
import { RE2JS, RE2JSException } from "re2js";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { FieldPath } from "../value/field-path.ts";
import { invalidFilter, joinPath, tooComplex } from "./filter-faults.ts";
import { LOGICAL_OPERATORS } from "./filter-grammar.ts";
import { type Filter, isOperators, MATCH_NONE, TYPE_NAMES, type TypeName, toField } from "./filter-types.ts";

/** What the operators need from the parser they belong to: nested filters, literals, and the count of nodes. */
export interface ConditionParser {
  parseDocument(document: JsonObject, where: string, prefix: string, depth: number): Filter;
  parseOperators(operators: JsonObject, path: FieldPath, where: string, declaredPath: string, depth: number): Filter;
  checkLiteral(value: Json, where: string, declaredPath: string, depth: number): Json;
  count(where: string): void;
}

export interface OperatorContext {
  readonly parser: ConditionParser;
  readonly path: FieldPath;
  /** Where the operator stands in the request. */
  readonly at: string;
  /** The dotted path from the record's root; "" where there is no such path. */
  readonly declaredPath: string;
  readonly depth: number;
  /** The condition that the operator is part of: `$regex` looks for `$options` there. */
  readonly siblings: JsonObject;
}

/** Parses a known field operator; returns undefined for `$options`, which `$regex` reads. */
export function parseFieldOperator(operator: string, operand: Json, context: OperatorContext): Filter | undefined {
  const { path, at } = context;
  switch (operator) {
    case "$eq":
      return toField(path, { op: "eq", value: literal(operand, context) });
    case "$ne":
      return not(toField(path, { op: "eq", value: literal(operand, context) }));
    case "$gt":
    case "$gte":
    case "$lt":
    case "$lte": {
      const op = operator.slice(1) as "gt" | "gte" | "lt" | "lte";
      return toField(path, { op, value: literal(operand, context) });
    }
    case "$in":
      return toField(path, { op: "in", values: literals(operator, operand, context) });
    case "$nin":
      return not(toField(path, { op: "in", values: literals(operator, operand, context) }));
    case "$all":
      return parseAll(operand, context);
    case "$exists":
      return parseExists(operand, context);
    case "$size":
      if (typeof operand !== "number" || !Number.isSafeInteger(operand) || operand < 0)
        throw invalidFilter(at, refusal("filter.size"));
      return toField(path, { op: "size", size: operand });
    case "$type":
      return toField(path, { op: "type", types: parseTypes(operand, at) });
    case "$mod":
      return parseMod(operand, context);
    case "$elemMatch":
      return parseElemMatch(operand, context);
    case "$regex":
      return toField(path, { op: "regex", regex: parseRegex(operand, context) });
    case "$options":
      if (!Object.hasOwn(context.siblings, "$regex")) throw invalidFilter(at, refusal("filter.options_alone"));
      return undefined;
    default:
      return parseNot(operand, context);
  }
}

function not(filter: Filter): Filter {
  return { kind: "not", filter };
}

function literal(operand: Json, { parser, at, declaredPath, depth }: OperatorContext): Json {
  if (isJsonObject(operand) && Object.hasOwn(operand, "$regex")) throw invalidFilter(at, refusal("filter.regex_alone"));
  return parser.checkLiteral(operand, at, declaredPath, depth);
}

function literals(operator: string, operand: Json, context: OperatorContext): Json[] {
  const { parser, at, declaredPath, depth } = context;
  const list = listOf(operator, operand, at);
  list.forEach((entry, index) => {
    const where = joinPath(at, String(index));
    refuseOperators(entry, operator, where);
    parser.checkLiteral(entry, where, declaredPath, depth);
  });
  return list;
}

function listOf(operator: string, operand: Json, at: string): Json[] {
  if (!Array.isArray(operand)) throw invalidFilter(at, refusal("filter.array", { operator }));
  if (operand.length > LIMITS.filterListEntries) throw tooComplex(at, LIMITS.filterListEntries, "entries");
  return operand;
}

function refuseOperators(entry: Json, operator: string, where: string): void {
  if (isOperators(entry)) throw invalidFilter(where, refusal("filter.plain_values", { operator }));
}

/** `$all` means that every entry is present; with `$elemMatch` entries, that some element matches each of them. */
function parseAll(operand: Json, context: OperatorContext): Filter {
  const { parser, path, at, declaredPath, depth } = context;
  const list = listOf("$all", operand, at);
  if (list.length === 0) return MATCH_NONE;
  const filters = list.map((entry, index): Filter => {
    const where = joinPath(at, String(index));
    if (isJsonObject(entry) && Object.hasOwn(entry, "$elemMatch")) {
      const keys = Object.keys(entry);
      if (keys.length > 1) throw invalidFilter(where, refusal("filter.all_elem_match"));
      parser.count(where);
      const inner = { ...context, at: joinPath(where, "$elemMatch") };
      return parseElemMatch(entry["$elemMatch"] as Json, inner);
    }
    refuseOperators(entry, "$all", where);
    return toField(path, { op: "eq", value: parser.checkLiteral(entry, where, declaredPath, depth) });
  });
  return { kind: "and", filters };
}

function parseExists(operand: Json, { path, at }: OperatorContext): Filter {
  if (typeof operand !== "boolean" && operand !== 0 && operand !== 1 && operand !== null)
    throw invalidFilter(at, refusal("filter.exists"));
  const exists = toField(path, { op: "exists" });
  return operand === true || operand === 1 ? exists : not(exists);
}

function parseTypes(operand: Json, at: string): TypeName[] {
  const list = Array.isArray(operand) ? operand : [operand];
  if (list.length === 0) throw invalidFilter(at, refusal("filter.type_none"));
  return list.map((name) => {
    if (!(TYPE_NAMES as readonly Json[]).includes(name))
      throw invalidFilter(at, refusal("filter.type", { types: TYPE_NAMES }));
    return name as TypeName;
  });
}

function parseMod(operand: Json, { path, at }: OperatorContext): Filter {
  const [divisor, remainder] = Array.isArray(operand) && operand.length === 2 ? operand : [];
  if (!Number.isSafeInteger(divisor) || !Number.isSafeInteger(remainder) || divisor === 0)
    throw invalidFilter(at, refusal("filter.mod"));
  return toField(path, { op: "mod", divisor: divisor as number, remainder: remainder as number });
}

function parseElemMatch(operand: Json, { parser, path, at, declaredPath, depth }: OperatorContext): Filter {
  if (!isJsonObject(operand)) throw invalidFilter(at, refusal("filter.elem_match"));
  const [first] = Object.keys(operand);
  if (first?.startsWith("$") && !LOGICAL_OPERATORS.has(first)) {
    const element: FieldPath = { text: "", segments: [] };
    const filter = parser.parseOperators(operand, element, at, declaredPath, depth + 1);
    return toField(path, { op: "elemMatchValue", filter });
  }
  return toField(path, { op: "elemMatchDocument", filter: parser.parseDocument(operand, at, declaredPath, depth + 1) });
}

function parseNot(operand: Json, { parser, path, at, declaredPath, depth }: OperatorContext): Filter {
  if (!isJsonObject(operand) || Object.keys(operand).length === 0) throw invalidFilter(at, refusal("filter.not"));
  for (const key of Object.keys(operand)) {
    if (key === "$date") throw invalidFilter(at, refusal("filter.not_value"));
    if (key.startsWith("$")) continue;
    throw invalidFilter(joinPath(at, key), refusal("filter.not_filter"));
  }
  return not(parser.parseOperators(operand, path, at, declaredPath, depth + 1));
}

const REGEX_FLAGS: ReadonlyMap<string, number> = new Map([
  ["i", RE2JS.CASE_INSENSITIVE],
  ["m", RE2JS.MULTILINE],
  ["s", RE2JS.DOTALL],
]);

function parseRegex(operand: Json, { at, siblings }: OperatorContext): RE2JS {
  if (typeof operand !== "string") throw invalidFilter(at, refusal("filter.regex_text"));
  if (operand.length > LIMITS.regexChars) throw tooComplex(at, LIMITS.regexChars, "regexChars");
  const options = Object.hasOwn(siblings, "$options") ? siblings["$options"] : "";
  const optionsFault = refusal("filter.options");
  const optionsAt = at.replace(/\$regex$/, "$options");
  if (typeof options !== "string") throw invalidFilter(optionsAt, optionsFault);
  let flags = 0;
  for (const letter of options) {
    const flag = REGEX_FLAGS.get(letter);
    if (flag === undefined) throw invalidFilter(optionsAt, optionsFault);
    flags |= flag;
  }
  return compileRegex(operand, flags, at);
}

function compileRegex(source: string, flags: number, at: string): RE2JS {
  let regex: RE2JS;
  try {
    regex = RE2JS.compile(source, flags);
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    throw invalidFilter(at, refusal("filter.regex_syntax", { fault: error.message }));
  }
  if (regex.programSize() > LIMITS.regexProgramSize) throw tooComplex(at, LIMITS.regexProgramSize, "regexSteps");
  return regex;
}
