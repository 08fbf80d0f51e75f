import type { FieldScope } from "../../change/codec/dataset-rules.ts";
import { digestOfCid } from "../../crypto/cid.ts";
import { refusedAs, SvcError } from "../../protocol/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { PropertyDef } from "../../protocol/type.ts";
import { parseRfc3339 } from "../../query/value/instant.ts";
import type { FormatType } from "./property-format.ts";
import { type Shape, shapeFault } from "./value-kind.ts";

const LINK_PREFIX = "svc://";
const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** Checks values against the properties of one type; see `SchemaPort.checkValues`. */
export function checkPropertyValues(
  typeId: string,
  properties: ReadonlyMap<string, PropertyDef>,
  values: JsonObject,
  notFoundStatus: 400 | 404,
): FieldScope {
  let scope: FieldScope | undefined;
  for (const [propId, value] of Object.entries(values)) {
    const property = properties.get(propId);
    if (!property) {
      throw new SvcError("property.not_found", {
        details: { propId, typeId },
        refusal: refusal("property.unknown_key", { propId }),
        status: notFoundStatus,
      });
    }
    if (property.scope === "derived")
      throw refusedAs(
        "request.invalid_field",
        { field: propId, reason: "derived" },
        refusal("property.derived", { propId }),
      );
    if (scope !== undefined && scope !== property.scope) {
      const reason = refusal("property.one_scope", { propId, scope: property.scope, others: scope });
      throw refusedAs("request.invalid_field", { field: "patch" }, refusal("property.mixed_scopes"), { reason });
    }
    scope = property.scope;
    if (value !== null && value !== undefined) checkPropertyValue(property, value);
  }
  return scope ?? "synced";
}

/** Checks one value. Throws property.kind_mismatch and property.format_violation. */
export function checkPropertyValue(property: PropertyDef, value: Json): void {
  const { id: propId, kind, format } = property;
  const fault = shapeFault(propertyShape(property), value);
  const at = property.name || propId;
  if (fault) throw refusedAs("property.kind_mismatch", { propId, kind }, { ...fault, at }, { reason: fault });
  const why = format && formatViolation(format.type, value);
  if (why)
    throw refusedAs("property.format_violation", { propId, format: format.type }, { ...why, at }, { reason: why });
}

export function propertyShape({ kind, items, properties, required }: PropertyDef): Shape {
  return {
    kind,
    ...(items ? { items: items as Shape } : {}),
    ...(properties ? { properties: properties as Record<string, Shape> } : {}),
    ...(required ? { required } : {}),
  };
}

/** Why a value, already of its kind, is outside its format. Whether what it names exists is not asked. */
function formatViolation(format: FormatType, value: Json): Refusal | undefined {
  switch (format) {
    case "links":
      return everyText(value, isLink) ? undefined : refusal("format.links");
    case "date":
      if (typeof value === "string")
        return DAY.test(value) && parseRfc3339(`${value}T00:00:00Z`) !== undefined ? undefined : refusal("format.date");
      return isMidnight(value) ? undefined : refusal("format.date_instant");
    case "datetime":
      return typeof value !== "string" || parseRfc3339(value) !== undefined ? undefined : refusal("format.datetime");
    case "select":
      return value === "" ? refusal("format.option_empty") : undefined;
    case "multiselect":
      return everyText(value, (text) => text !== "") ? undefined : refusal("format.multiselect");
  }
}

function everyText(value: Json, test: (text: string) => boolean): boolean {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string" && test(entry));
}

function isLink(text: string): boolean {
  return text.startsWith(LINK_PREFIX) && digestOfCid(text.slice(LINK_PREFIX.length)) !== undefined;
}

function isMidnight(value: Json): boolean {
  return isJsonObject(value) && typeof value["$date"] === "string" && value["$date"].endsWith("T00:00:00.000Z");
}
