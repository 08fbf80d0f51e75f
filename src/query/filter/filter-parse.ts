/**
 * Parses filters from request bodies (QUERY-1): MongoDB's grammar, limited to the operators listed there. Every fault is a
 * `filter.*` error whose `details.path` says where it is, as in `$and.1.price.$gt`.
 */
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { refusal } from "../../protocol/refusals.ts";
import { type FieldPath, toFieldPath } from "../value/field-path.ts";
import { isDateShaped, parseInstant } from "../value/instant.ts";
import { invalidFilter, joinPath, shorten, tooComplex, unknownOperator } from "./filter-faults.ts";
import { FIELD_OPERATORS, LOGICAL_OPERATORS, OPERATORS } from "./filter-grammar.ts";
import { type ConditionParser, parseFieldOperator } from "./filter-operators.ts";
import { allOf, type Filter, isOperators, MATCH_ALL, toField } from "./filter-types.ts";

export interface FilterOptions {
  /** Returns the declared kind of a dotted path, where it matters: a datetime may only be compared with a `{$date}`. */
  readonly declared?: ((path: string) => "datetime" | undefined) | undefined;
}

/**
 * Parses a filter; absent, null and `{}` match everything.
 * @throws SvcError filter.unknown_operator, filter.invalid, filter.too_complex
 */
export function parseFilter(input: unknown, options: FilterOptions = {}): Filter {
  if (input === undefined || input === null) return MATCH_ALL;
  if (!isJsonObject(input)) throw invalidFilter("", refusal("filter.object"));
  return new FilterParser(options).parseDocument(input, "", "", 1);
}

/**
 * Parses one filter and counts its nodes. `where` is the path in the request; `prefix` is the path at which `$elemMatch` stands.
 */
class FilterParser implements ConditionParser {
  readonly #declared: FilterOptions["declared"];
  #nodes = 0;

  constructor(options: FilterOptions) {
    this.#declared = options.declared;
  }

  parseDocument(document: JsonObject, where: string, prefix: string, depth: number): Filter {
    this.#checkDepth(depth, where);
    return allOf(
      Object.entries(document).map(([key, value]) => {
        const at = joinPath(where, key);
        if (!key.startsWith("$")) return this.#parsePath(key, value, at, prefix, depth);
        return this.#parseLogical(key, value, at, prefix, depth);
      }),
    );
  }

  /** The operators of one condition, ANDed. `path` has no segments inside a value `$elemMatch`. */
  parseOperators(operators: JsonObject, path: FieldPath, where: string, declaredPath: string, depth: number): Filter {
    this.#checkDepth(depth, where);
    const filters: Filter[] = [];
    for (const [operator, operand] of Object.entries(operators)) {
      const at = joinPath(where, operator);
      if (!operator.startsWith("$")) throw invalidFilter(at, refusal("filter.mixed"));
      if (operator === "$date") throw invalidFilter(at, refusal("filter.date_key"));
      if (!OPERATORS.has(operator)) throw unknownOperator(operator, at);
      if (!FIELD_OPERATORS.has(operator)) throw invalidFilter(at, refusal("filter.logical", { operator }));
      this.count(at);
      const context = { parser: this, path, at, declaredPath, depth, siblings: operators };
      const filter = parseFieldOperator(operator, operand as Json, context);
      if (filter) filters.push(filter);
    }
    return allOf(filters);
  }

  /** Checks a literal that is compared with: its dates must be well-formed, and it must suit the path's declaration. */
  checkLiteral(value: Json, where: string, declaredPath: string, depth: number): Json {
    this.#checkLiteralPart(value, where, depth);
    const bare = typeof value === "number" || typeof value === "string";
    if (bare && declaredPath !== "" && this.#declared?.(declaredPath) === "datetime")
      throw invalidFilter(where, refusal("filter.datetime", { path: shorten(declaredPath) }));
    return value;
  }

  count(where: string): void {
    if (++this.#nodes > LIMITS.filterNodes) throw tooComplex(where, LIMITS.filterNodes, "nodes");
  }

  #parsePath(key: string, value: Json, where: string, prefix: string, depth: number): Filter {
    const path = toFieldPath(key);
    if (path.segments.includes("$date")) throw invalidFilter(where, refusal("filter.date_path"));
    const declaredPath = joinPath(prefix, key);
    if (isOperators(value)) return this.parseOperators(value, path, where, declaredPath, depth);
    this.count(where);
    return toField(path, { op: "eq", value: this.checkLiteral(value, where, declaredPath, depth) });
  }

  #parseLogical(operator: string, operand: Json, where: string, prefix: string, depth: number): Filter {
    if (!OPERATORS.has(operator)) throw unknownOperator(operator, where);
    if (!LOGICAL_OPERATORS.has(operator)) throw invalidFilter(where, refusal("filter.not_logical", { operator }));
    this.count(where);
    if (!Array.isArray(operand) || operand.length === 0)
      throw invalidFilter(where, refusal("filter.filters", { operator }));
    const filters = operand.map((part, index) => {
      const at = joinPath(where, String(index));
      if (!isJsonObject(part)) throw invalidFilter(at, refusal("filter.filter", { operator }));
      return this.parseDocument(part, at, prefix, depth + 1);
    });
    if (operator === "$and") return allOf(filters);
    return operator === "$or" ? { kind: "or", filters } : { kind: "not", filter: { kind: "or", filters } };
  }

  #checkLiteralPart(value: Json, where: string, depth: number): void {
    if (typeof value !== "object" || value === null) return;
    this.#checkDepth(depth + 1, where);
    if (Array.isArray(value)) {
      value.forEach((part, index) => {
        this.#checkLiteralPart(part, joinPath(where, String(index)), depth + 1);
      });
      return;
    }
    if (isDateShaped(value)) {
      if (parseInstant(value["$date"]) === undefined)
        throw invalidFilter(joinPath(where, "$date"), refusal("filter.date_value"));
      return;
    }
    for (const [key, part] of Object.entries(value)) this.#checkLiteralPart(part, joinPath(where, key), depth + 1);
  }

  #checkDepth(depth: number, where: string): void {
    if (depth > LIMITS.filterDepth) throw tooComplex(where, LIMITS.filterDepth, "levels");
  }
}
