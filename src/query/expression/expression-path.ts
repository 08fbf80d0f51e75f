/** Field paths in expressions: `$a.b` maps over arrays of objects, a numeric segment picks an element. */
import type { Json } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import { arrayIndexOf, isSubdocument, ownValue, toFieldPath } from "../value/field-path.ts";
import { badPipeline, type PipelinePath } from "./aggregate-faults.ts";
import type { Expression } from "./expression-types.ts";

const MAX_SEGMENTS = 64;

/** Parses `$a.b`. */
export function parseFieldExpression(text: string, where: PipelinePath): Expression {
  if (text.startsWith("$$")) throw badPipeline(where, refusal("expression.variable"));
  const path = text.slice(1);
  const { segments } = toFieldPath(path);
  if (segments.some((segment) => segment === "" || segment.startsWith("$")) || segments.length > MAX_SEGMENTS)
    throw badPipeline(where, refusal("expression.path"));
  const [only] = segments;
  if (segments.length === 1 && only !== undefined) return { path, evaluate: (doc) => ownValue(doc, only) };
  const indexes = segments.map(arrayIndexOf);
  return { path, evaluate: (doc) => reach(doc, segments, indexes, 0) };
}

/** The value at a dotted path of a document, read as an expression reads it. */
export function readPath(doc: Json, path: string): Json | undefined {
  const { segments } = toFieldPath(path);
  return reach(doc, segments, segments.map(arrayIndexOf), 0);
}

function reach(
  value: Json | undefined,
  segments: readonly string[],
  indexes: readonly number[],
  at: number,
): Json | undefined {
  if (at === segments.length) return value;
  if (!Array.isArray(value))
    return isSubdocument(value) ? reach(ownValue(value, segments[at] as string), segments, indexes, at + 1) : undefined;
  const index = indexes[at] as number;
  if (index >= 0) return index < value.length ? reach(value[index], segments, indexes, at + 1) : undefined;
  const found: Json[] = [];
  for (const element of value) {
    const part = isSubdocument(element) ? reach(element, segments, indexes, at) : undefined;
    if (part !== undefined) found.push(part);
  }
  return found;
}
