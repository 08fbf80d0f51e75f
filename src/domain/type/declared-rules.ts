import { RE2JS, RE2JSException } from "re2js";
import type { RecordOp } from "../../change/codec/change-body.ts";
import type { DatasetRules, FieldScope, Stamp } from "../../change/codec/dataset-rules.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import {
  DEFAULT_ID_MAX_LENGTH,
  DEFAULT_ID_PATTERN,
  type Declaration,
  type DeclaredField,
  type StampName,
} from "./declaration.ts";
import { shapeBelow, shapeFault } from "./value-kind.ts";

/** How a declared dataset folds, and what its device-local fields take. */
export interface DeclaredRules {
  readonly rules: DatasetRules;
  /** Why a device-local op on one path is refused. */
  localFault(op: RecordOp): Refusal | undefined;
}

/**
 * Compiles the rules of a declaration. Everything is judged by the declaration, the record before the op and the change's
 * envelope, so that local and remote changes give the same result in whatever order they arrive. Author rules fail closed:
 * without a creator stamp on the record nobody may change it.
 */
export function compileDeclaration(declaration: Declaration): DeclaredRules {
  const fields = new Map(declaration.fields.map((field) => [field.key, field]));
  const required = declaration.fields.filter((field) => field.required);
  const stamps = declaration.fields.filter((field) => field.stamp !== undefined);
  const modifyStamps = stamps.filter((field) => field.stamp === "modifyTime");
  const creatorKey = stamps.find((field) => field.stamp === "creator")?.key;
  const idFault = declaration.idRule === "user" ? userIdFault(declaration) : undefined;

  const isAuthor = (doc: JsonObject, author: string): boolean =>
    creatorKey !== undefined && doc[creatorKey] === author && author !== "";
  const scopeOf = (segments: readonly string[]): FieldScope => fields.get(segments[0]!)?.scope ?? "synced";

  const rules: DatasetRules = {
    name: declaration.name,
    idRule: declaration.idRule,
    ...(declaration.skipHistory ? { skipHistory: true } : {}),
    scopeOf,

    refuseCreate(id, ops) {
      const fault = idFault?.(id);
      if (fault) return fault;
      const missing = required.find((field) => !isSetBy(ops, field));
      return missing ? refusal("field.missing", { field: missing.key }) : undefined;
    },

    refuseDelete: (doc, envelope) =>
      declaration.deleteBy === "anyone" || isAuthor(doc, envelope.author) ? undefined : refusal("record.not_author"),

    refuseOp(doc, segments, op, creating, envelope) {
      const field = fields.get(segments[0]!);
      if (!field) {
        if (declaration.dynamic) return undefined;
        return refusal("field.unknown", { field: segments[0]! });
      }
      if (field.stamp) return refusal("field.stamped", { field: field.key });
      if (field.scope !== "synced") return refusal("field.scope", { field: field.key, scope: field.scope });
      if (!creating) {
        if (field.mutableBy === "never") return refusal("field.write_once");
        if (field.mutableBy === "author" && !isAuthor(doc, envelope.author)) return refusal("record.not_author");
      }
      if (segments.length === 1 && op.type === "$set") return shapeFault(field.shape, op.value, { where: field.key });
      return opFault(field, segments.slice(1), op);
    },

    stamps: (_doc, creating, envelope) =>
      (creating ? stamps : modifyStamps).map((field): Stamp => [[field.key], stampValue(field.stamp!, envelope)]),
  };

  return {
    rules,
    localFault(op) {
      const [key, ...below] = op.path.split(".");
      const field = fields.get(key!);
      return field?.scope === "local" ? opFault(field, below, op) : refusal("field.not_local");
    },
  };
}

function stampValue(stamp: StampName, envelope: { author: string; timeMs: number }): Json {
  return stamp === "creator" ? envelope.author : { $date: new Date(envelope.timeMs).toISOString() };
}

/** Why an op does not fit the declared shape of what it writes to. */
function opFault(field: DeclaredField, below: readonly string[], op: RecordOp): Refusal | undefined {
  if (op.type === "$unset")
    return field.required && below.length === 0 ? refusal("field.required", { field: field.key }) : undefined;
  if (op.type === "$set") return valueFault(field, below, op.value);
  const shape = shapeBelow(field.shape, below);
  const where = [field.key, ...below].join(".");
  if (!shape) return below.length > 0 ? containerFault(field, below) : undefined;
  if (op.type === "$inc")
    return shape.kind === "number" ? undefined : refusal("value.is_no", { where, kind: "number" });
  if (shape.kind !== "array") return refusal("value.is_no", { where, kind: "array" });
  return op.type === "$addToSet" && shape.items
    ? shapeFault(shape.items, op.value, { where, element: true })
    : undefined;
}

function valueFault(field: DeclaredField, below: readonly string[], value: Json | undefined): Refusal | undefined {
  const shape = shapeBelow(field.shape, below);
  if (shape) return shapeFault(shape, value, { where: [field.key, ...below].join(".") });
  return containerFault(field, below);
}

/** A path that the shape does not reach may go on below a free object only: anything else would change a kind. */
function containerFault(field: DeclaredField, below: readonly string[]): Refusal | undefined {
  for (let depth = 0; depth < below.length; depth++) {
    const shape = shapeBelow(field.shape, below.slice(0, depth));
    if (!shape) return undefined;
    if (shape.kind !== "object")
      return refusal("value.is_no", { where: [field.key, ...below.slice(0, depth)].join("."), kind: "object" });
  }
  return undefined;
}

/** Whether the creating change gives the field a value that will be kept. */
function isSetBy(ops: readonly RecordOp[], field: DeclaredField): boolean {
  return ops.some((op) => {
    if (op.type !== "$set") return false;
    const value =
      op.path === field.key
        ? op.value
        : op.path === "" && isJsonObject(op.value) && Object.hasOwn(op.value, field.key)
          ? op.value[field.key]
          : undefined;
    return value !== undefined && valueFault(field, [], value) === undefined;
  });
}

/** The default pattern over whole ids, native: it says the same in RE2 and in ECMAScript. */
const DEFAULT_ID = new RegExp(`^(?:${DEFAULT_ID_PATTERN})$`);

/** The check of ids that callers name. A pattern that is refused, in the definition of another, admits none. */
function userIdFault(declaration: Declaration): (id: string) => Refusal | undefined {
  const maxLength = Math.min(declaration.idMaxLen ?? DEFAULT_ID_MAX_LENGTH, LIMITS.recordIdChars);
  const source = declaration.idPattern ?? DEFAULT_ID_PATTERN;
  const pattern = source === DEFAULT_ID_PATTERN ? DEFAULT_ID : compileIdPattern(source, declaration.idMaxLen);
  const matches = pattern instanceof RegExp ? (id: string) => pattern.test(id) : (id: string) => pattern?.matches(id);
  return (id) => {
    if (id.length > maxLength && [...id].length > maxLength) return refusal("id.too_long", { limitChars: maxLength });
    return matches(id) ? undefined : refusal("id.pattern", { pattern: source });
  };
}

/** The pattern over whole ids, or undefined when it is no RE2 syntax or could take long on an id of the greatest length. */
export function compileIdPattern(source: string, idMaxLen: number = DEFAULT_ID_MAX_LENGTH): RE2JS | undefined {
  try {
    const pattern = RE2JS.compile(source);
    return pattern.programSize() * idMaxLen > LIMITS.idPatternSteps ? undefined : pattern;
  } catch (error) {
    if (error instanceof RE2JSException) return undefined;
    throw error;
  }
}
