import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { bagFault, formatFault, hasOptions, isFormatType, OPTION_LEAVES, uiFault } from "./property-format.ts";
import { isKind, keyFault, type PartFault, shapeDraftFault } from "./value-kind.ts";

/** Scopes a property may be declared with. */
const PROPERTY_SCOPES = ["synced", "account", "local"] as const;
export const XKEY = /^[A-Za-z0-9_./:-]{1,128}$/;

const RECORD_KEYS = new Set([
  "name",
  "description",
  "xKey",
  "kind",
  "format",
  "meta",
  "scope",
  "items",
  "properties",
  "required",
]);
const PINNED = new Set(["kind", "scope", "items", "properties", "required"]);

/** What is wrong with the record of a property as it is created, or undefined. */
export function propertyRecordFault(fields: JsonObject): Refusal | undefined {
  const stray = Object.keys(fields).find((key) => !RECORD_KEYS.has(key));
  if (stray !== undefined) return refusal("property.part", { part: stray });
  const { name, description, xKey, kind, format, meta, scope, items, properties, required } = fields;
  if (typeof name !== "string") return refusal("property.name");
  if (description !== undefined && typeof description !== "string") return refusal("property.description");
  if (xKey !== undefined && !(typeof xKey === "string" && XKEY.test(xKey))) return refusal("property.xkey");
  if (!isKind(kind)) return refusal("property.kind");
  if (typeof scope !== "string" || !(PROPERTY_SCOPES as readonly string[]).includes(scope))
    return refusal("property.scope");
  const shape = shapeDraftFault(partsOf({ kind, items, properties, required }), "property");
  if (shape) return located(shape);
  const fault =
    (format === undefined ? undefined : formatFault(format, kind)) ??
    (meta === undefined ? undefined : bagFault(meta, "meta"));
  return fault && located(fault);
}

const located = ({ path, why }: PartFault): Refusal => ({ ...why, at: path });

function partsOf(parts: Record<string, Json | undefined>): JsonObject {
  const present: JsonObject = {};
  for (const [key, value] of Object.entries(parts)) if (value !== undefined) present[key] = value;
  return present;
}

/** Why a leaf cannot be set or (with an undefined value) removed. */
export interface LeafFault {
  kind: "immutable" | "invalid" | "format";
  why: Refusal;
}

const immutable: LeafFault = { kind: "immutable", why: refusal("property.pinned") };
const invalid = (why: Refusal): LeafFault => ({ kind: "invalid", why });
const badFormat = (why: Refusal): LeafFault => ({ kind: "format", why });

/**
 * Whether a path of a property's record may be set to a value, or removed (TYPE-2). The same rule guards the HTTP
 * patch and the fold of what other devices wrote.
 */
export function propertyLeafFault(
  property: JsonObject,
  segments: readonly string[],
  value: Json | undefined,
): LeafFault | undefined {
  const [top, ...below] = segments;
  if (PINNED.has(top!)) return immutable;
  switch (top) {
    case "name":
      if (below.length > 0) return invalid(refusal("property.nothing_below", { path: "name" }));
      return typeof value === "string" ? undefined : invalid(refusal("property.name_stays"));
    case "description":
      return below.length > 0 ? invalid(refusal("property.nothing_below", { path: "description" })) : textFault(value);
    case "xKey":
      if (below.length > 0) return invalid(refusal("property.nothing_below", { path: "xKey" }));
      if (value === undefined) return undefined;
      return typeof value === "string" && XKEY.test(value) ? undefined : invalid(refusal("property.xkey_form"));
    case "meta":
      return bagLeafFault(below, value);
    case "format":
      return formatLeafFault(property["format"], below, value);
    default:
      return invalid(refusal("property.no_part"));
  }
}

function textFault(value: Json | undefined): LeafFault | undefined {
  return value === undefined || typeof value === "string" ? undefined : invalid(refusal("value.string"));
}

/** `meta.<k>`; the whole bag can only be removed. */
function bagLeafFault(below: readonly string[], value: Json | undefined): LeafFault | undefined {
  if (below.length === 0) return value === undefined ? undefined : invalid(refusal("bag.leaves"));
  if (below.length > 1) return invalid(refusal("bag.key"));
  const fault = keyFault(below[0]!);
  return fault ? invalid(fault) : textFault(value);
}

function formatLeafFault(
  format: Json | undefined,
  [leaf, ...below]: readonly string[],
  value: Json | undefined,
): LeafFault | undefined {
  if (leaf === undefined || leaf === "type") return immutable;
  const type = isJsonObject(format) ? format["type"] : undefined;
  if (!isFormatType(type)) return badFormat(refusal("format.absent"));
  switch (leaf) {
    case "ui": {
      if (below.length > 0) return invalid(refusal("property.nothing_below", { path: "format.ui" }));
      const fault = value === undefined ? undefined : uiFault(type, value);
      return fault && badFormat(fault.why);
    }
    case "filter":
      if (below.length > 0) return invalid(refusal("format.filter_whole"));
      if (type !== "links") return badFormat(refusal("format.filter"));
      return value === undefined || isJsonObject(value) ? undefined : badFormat(refusal("format.filter_object"));
    case "meta":
      return bagLeafFault(below, value);
    case "options":
      return hasOptions(type) ? optionLeafFault(below, value) : badFormat(refusal("format.options"));
    default:
      return invalid(refusal("format.no_part"));
  }
}

function optionLeafFault([key, leaf, ...below]: readonly string[], value: Json | undefined): LeafFault | undefined {
  if (key !== undefined) {
    const fault = keyFault(key);
    if (fault) return invalid(fault);
  }
  if (key === undefined || leaf === undefined) {
    return value === undefined ? undefined : invalid(refusal("format.option_leaves"));
  }
  if (leaf === "meta") return bagLeafFault(below, value);
  if (!(OPTION_LEAVES as readonly string[]).includes(leaf) || below.length > 0)
    return invalid(refusal("format.option_parts"));
  return textFault(value);
}
