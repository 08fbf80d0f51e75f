import { isJsonObject, type Json } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { KINDS } from "../../protocol/type.ts";
import { instantOf, isCanonicalInstant, isDateShaped } from "../../query/value/instant.ts";

export type Kind = (typeof KINDS)[number];

/** A kind and, for arrays and objects, what is inside. Keys that an object's shape does not name are free. */
export interface Shape {
  readonly kind: Kind;
  /** The shape of every element; only where the kind is array. */
  readonly items?: Shape;
  /** The shapes of the named keys; only where the kind is object. */
  readonly properties?: Readonly<Record<string, Shape>>;
  /** Keys that an object must have; only where the kind is object. */
  readonly required?: readonly string[];
}

/** The path of a value; with `element`, that of an array to which it is added. */
export interface ValueName {
  readonly where?: string;
  readonly element?: true;
}

/** Where a declaration is wrong, and why. */
export interface PartFault {
  readonly path: string;
  readonly why: Refusal;
}

const SHAPE_KEYS = new Set(["kind", "items", "properties", "required"]);

export function isKind(value: unknown): value is Kind {
  return typeof value === "string" && (KINDS as readonly string[]).includes(value);
}

/**
 * What is wrong with a value of a shape, or undefined. Instants must be in the canonical form (UTC with milliseconds),
 * which every server writes: so a record has one form everywhere. `of` says what the value is called.
 */
export function shapeFault(shape: Shape, value: Json | undefined, of: ValueName = {}): Refusal | undefined {
  if (!isOfKind(shape.kind, value)) return refusal("value.kind", { ...of, kind: shape.kind });
  if (shape.items && Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const fault = shapeFault(shape.items, value[i], { ...of, where: `${of.where ?? ""}[${i}]` });
      if (fault) return fault;
    }
  }
  if (shape.kind === "object" && isJsonObject(value)) {
    for (const [key, part] of Object.entries(shape.properties ?? {})) {
      if (!Object.hasOwn(value, key)) continue;
      const fault = shapeFault(part, value[key], { ...of, where: joined(of.where, key) });
      if (fault) return fault;
    }
    const missing = shape.required?.find((key) => !Object.hasOwn(value, key));
    if (missing !== undefined) return refusal("value.lacks", { ...of, key: missing });
  }
  return undefined;
}

const joined = (where: string | undefined, key: string): string => (where === undefined ? key : `${where}.${key}`);

function isOfKind(kind: Kind, value: Json | undefined): boolean {
  switch (kind) {
    case "array":
      return Array.isArray(value);
    case "object":
      return isJsonObject(value) && !(isDateShaped(value) && instantOf(value) !== undefined);
    case "datetime":
      return isJsonObject(value) && isDateShaped(value) && isCanonicalInstant(value["$date"]);
    default:
      return typeof value === kind;
  }
}

/** The shape declared for what lies at a path below a value of `shape`, or undefined where nothing is declared. */
export function shapeBelow(shape: Shape, segments: readonly string[]): Shape | undefined {
  let at: Shape | undefined = shape;
  for (const segment of segments) {
    if (at?.kind !== "object" || !at.properties || !Object.hasOwn(at.properties, segment)) return undefined;
    at = at.properties[segment];
  }
  return at;
}

/** The kind declared at the end of a path that may lead through arrays, as filters walk it. */
export function kindAlong(shape: Shape, segments: readonly string[]): Kind | undefined {
  let at: Shape | undefined = shape;
  for (const segment of segments) {
    if (at?.kind === "array") {
      at = at.items;
      if (/^\d+$/.test(segment)) continue;
    }
    at =
      at?.kind === "object" && at.properties && Object.hasOwn(at.properties, segment)
        ? at.properties[segment]
        : undefined;
    if (!at) return undefined;
  }
  return at?.kind === "array" ? (at.items?.kind ?? "array") : at?.kind;
}

/** What is wrong with a declared shape, or undefined. */
export function shapeDraftFault(draft: unknown, path: string, depth = 1): PartFault | undefined {
  if (!isJsonObject(draft)) return { path, why: refusal("shape.object") };
  if (depth > LIMITS.shapeDepth) return { path, why: refusal("shape.depth") };
  const stray = Object.keys(draft).find((key) => !SHAPE_KEYS.has(key));
  if (stray !== undefined) return { path: `${path}.${stray}`, why: refusal("shape.parts") };
  const { kind, items, properties, required } = draft;
  if (!isKind(kind)) return { path: `${path}.kind`, why: refusal("value.one_of", { values: KINDS }) };
  if (items !== undefined) {
    if (kind !== "array") return { path: `${path}.items`, why: refusal("shape.items") };
    const fault = shapeDraftFault(items, `${path}.items`, depth + 1);
    if (fault) return fault;
  }
  if (properties !== undefined) {
    if (kind !== "object") return { path: `${path}.properties`, why: refusal("shape.properties") };
    if (!isJsonObject(properties)) return { path: `${path}.properties`, why: refusal("shape.properties_object") };
    for (const [key, part] of Object.entries(properties)) {
      const fault = keyFault(key);
      if (fault) return { path: `${path}.properties.${key}`, why: fault };
      const inner = shapeDraftFault(part, `${path}.properties.${key}`, depth + 1);
      if (inner) return inner;
    }
  }
  if (required !== undefined) {
    if (kind !== "object") return { path: `${path}.required`, why: refusal("shape.required") };
    if (!Array.isArray(required) || !required.every((key) => typeof key === "string"))
      return { path: `${path}.required`, why: refusal("shape.required_array") };
  }
  return undefined;
}

/** What is wrong with the name of a field or key that paths lead through, or undefined. */
export function keyFault(key: string): Refusal | undefined {
  if (key === "" || key.length > 128) return refusal("key.length");
  if (key.includes(".") || key === "*") return refusal("key.dot");
  if (key.startsWith("$")) return refusal("key.dollar");
  if (key === "__proto__") return refusal("key.proto");
  return undefined;
}

/** The shape as it is stored and hashed: known keys only, in one order, empty parts left out. */
export function canonicalShape(draft: Shape): Shape {
  const properties = Object.entries(draft.properties ?? {}).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return {
    kind: draft.kind,
    ...(draft.items ? { items: canonicalShape(draft.items) } : {}),
    ...(properties.length > 0
      ? { properties: Object.fromEntries(properties.map(([key, part]) => [key, canonicalShape(part)])) }
      : {}),
    ...(draft.required && draft.required.length > 0 ? { required: [...new Set(draft.required)].sort() } : {}),
  };
}
