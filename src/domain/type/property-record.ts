import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { bagFault, formatFault, hasOptions, isFormatType, OPTION_LEAVES, uiFault } from "./property-format.ts";
import { isKind, keyFault, shapeDraftFault } from "./value-kind.ts";

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
export function propertyRecordFault(fields: JsonObject): string | undefined {
  const stray = Object.keys(fields).find((key) => !RECORD_KEYS.has(key));
  if (stray !== undefined) return `a property has no ${stray}`;
  const { name, description, xKey, kind, format, meta, scope, items, properties, required } = fields;
  if (typeof name !== "string") return "name must be a string";
  if (description !== undefined && typeof description !== "string") return "description must be a string";
  if (xKey !== undefined && !(typeof xKey === "string" && XKEY.test(xKey))) return "xKey is refused";
  if (!isKind(kind)) return "kind is unknown";
  if (typeof scope !== "string" || !(PROPERTY_SCOPES as readonly string[]).includes(scope)) return "scope is unknown";
  const shape = shapeDraftFault(partsOf({ kind, items, properties, required }), "property");
  if (shape) return `${shape.path}: ${shape.reason}`;
  const fault =
    (format === undefined ? undefined : formatFault(format, kind)) ??
    (meta === undefined ? undefined : bagFault(meta, "meta"));
  return fault && `${fault.path}: ${fault.reason}`;
}

function partsOf(parts: Record<string, Json | undefined>): JsonObject {
  const present: JsonObject = {};
  for (const [key, value] of Object.entries(parts)) if (value !== undefined) present[key] = value;
  return present;
}

/** Why a leaf cannot be set or (with an undefined value) removed. */
export interface LeafFault {
  kind: "immutable" | "invalid" | "format";
  reason: string;
}

const immutable: LeafFault = { kind: "immutable", reason: "this part of a property never changes" };
const invalid = (reason: string): LeafFault => ({ kind: "invalid", reason });
const badFormat = (reason: string): LeafFault => ({ kind: "format", reason });

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
      if (below.length > 0) return invalid("there is nothing below name");
      return typeof value === "string" ? undefined : invalid("name is a string and stays");
    case "description":
      return below.length > 0 ? invalid("there is nothing below description") : textFault(value);
    case "xKey":
      if (below.length > 0) return invalid("there is nothing below xKey");
      if (value === undefined) return undefined;
      return typeof value === "string" && XKEY.test(value)
        ? undefined
        : invalid("xKey is 1 to 128 characters of A-Z, a-z, 0-9 and _ . / : -");
    case "meta":
      return bagLeafFault(below, value);
    case "format":
      return formatLeafFault(property["format"], below, value);
    default:
      return invalid("a property has no such part");
  }
}

function textFault(value: Json | undefined): LeafFault | undefined {
  return value === undefined || typeof value === "string" ? undefined : invalid("a string");
}

/** `meta.<k>`; the whole bag can only be removed. */
function bagLeafFault(below: readonly string[], value: Json | undefined): LeafFault | undefined {
  if (below.length === 0) return value === undefined ? undefined : invalid("set its leaves one by one");
  if (below.length > 1) return invalid("a key of meta has no dot");
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
  if (!isFormatType(type)) return badFormat("the property has no format");
  switch (leaf) {
    case "ui": {
      if (below.length > 0) return invalid("there is nothing below format.ui");
      const fault = value === undefined ? undefined : uiFault(type, value);
      return fault && badFormat(fault.reason);
    }
    case "filter":
      if (below.length > 0) return invalid("the filter is set whole");
      if (type !== "links") return badFormat("only links have a filter");
      return value === undefined || isJsonObject(value) ? undefined : badFormat("a filter is an object");
    case "meta":
      return bagLeafFault(below, value);
    case "options":
      return hasOptions(type) ? optionLeafFault(below, value) : badFormat("only select and multiselect have options");
    default:
      return invalid("a format has no such part");
  }
}

function optionLeafFault([key, leaf, ...below]: readonly string[], value: Json | undefined): LeafFault | undefined {
  if (key !== undefined) {
    const fault = keyFault(key);
    if (fault) return invalid(fault);
  }
  if (key === undefined || leaf === undefined) {
    return value === undefined ? undefined : invalid("set the leaves of an option: name, color, pos, meta.<key>");
  }
  if (leaf === "meta") return bagLeafFault(below, value);
  if (!(OPTION_LEAVES as readonly string[]).includes(leaf) || below.length > 0)
    return invalid("an option has name, color, pos and meta");
  return textFault(value);
}
