import { refusedAs, refusedPart, SvcError, svcError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { LeafPatchBody, PropertyCreateBody, PropertyDef } from "../../protocol/type.ts";
import { parseFilter } from "../../query/filter/filter-parse.ts";
import { createDefinitionChanges, type DefinitionChangesDeps, readLeafPatch } from "./definition-changes.ts";
import { PROPERTY_RULES } from "./definition-rules.ts";
import { bagFault, formatFault, impliedKind, isFormatType } from "./property-format.ts";
import { type LeafFault, propertyLeafFault, XKEY } from "./property-record.ts";
import type { TypeEntry } from "./schema-view.ts";
import { canonicalShape, type Kind, type Shape, shapeDraftFault } from "./value-kind.ts";

/** The properties of types: what values objects have under them, keyed by propId. */
export type PropertyService = ReturnType<typeof createPropertyService>;

export function createPropertyService(deps: DefinitionChangesDeps) {
  const { schema } = deps;
  const definitions = createDefinitionChanges(deps);

  const propertyOf = (type: TypeEntry, propId: string): PropertyDef => {
    const property = type.properties.get(propId);
    if (!property) throw refusedAs("sdk.not_found", { typeId: type.id, propId }, refusal("property.unknown"));
    return property;
  };

  return {
    /** Of a type by id or xKey, oldest first. Throws type.not_found. */
    list(typeName: string): PropertyDef[] {
      const typeId = schema.typeId(typeName);
      const properties = typeId === undefined ? undefined : schema.properties(typeId);
      if (!properties) throw svcError("type.not_found", { typeId: typeName });
      return [...properties.values()];
    },

    /**
     * With `derived` its id follows from its xKey, so that devices that add it apart have added one; the one that has the xKey
     * is adopted. Throws property.format_invalid, type.xkey_conflict, type.registered, type.not_found, request.*.
     */
    add(typeName: string, draft: PropertyCreateBody): Promise<PropertyDef> {
      const { xKey, derived } = draft;
      if (derived && xKey === undefined)
        throw refusedAs("request.missing_field", { field: "xKey" }, refusal("property.no_xkey"));
      const record = toPropertyRecord(draft);
      const adopt = (type: TypeEntry) => (derived ? propertyByXKey(type, xKey as string) : undefined);
      return definitions.changeUnless(adopt, typeName, (type, tx) => {
        if (xKey !== undefined) refuseTakenXKey(type, xKey);
        const id = definitions.create(tx, type.id, PROPERTY_RULES, record, derived);
        return { id, ...(record as unknown as Omit<PropertyDef, "id">) };
      });
    },

    /** Changes display leaves. Throws property.immutable, property.format_invalid, sdk.not_found and as above. */
    patch(typeName: string, propId: string, body: LeafPatchBody): Promise<void> {
      return definitions.change(typeName, (type, tx) => {
        const property = propertyOf(type, propId);
        const patch = readLeafPatch(body);
        for (const path of patch.unset)
          refuseLeaf(path, propertyLeafFault(asRecord(property), path.split("."), undefined));
        for (const [path, value] of patch.set) {
          refuseLeaf(path, propertyLeafFault(asRecord(property), path.split("."), value));
          if (path === "xKey") refuseTakenXKey(type, value as string, propId);
          if (path === "format.filter") refuseBadFilter(value);
        }
        definitions.patch(tx, type.id, PROPERTY_RULES, propId, patch);
      });
    },

    /** Removes a property: values stay, later ones are refused. */
    remove(typeName: string, propId: string): Promise<void> {
      return definitions.change(typeName, (type, tx) => {
        definitions.remove(tx, type.id, PROPERTY_RULES, propertyOf(type, propId).id);
      });
    },
  };
}

const asRecord = (property: PropertyDef): JsonObject => property as unknown as JsonObject;

/** The record of a new property. Throws the faults of a draft. */
function toPropertyRecord(draft: PropertyCreateBody): JsonObject {
  const { name, description, xKey, meta, scope } = draft;
  if (xKey !== undefined && !XKEY.test(xKey))
    throw refusedPart("request.invalid_field", { field: "xKey" }, refusal("key.xkey"), "takes");
  const fault = meta && bagFault(meta, "meta");
  if (fault) throw refusedPart("request.invalid_field", { field: fault.path }, fault.why, "colon");
  const format = draft.format as JsonObject | undefined;
  const kind = kindOf(draft.kind, format);
  if (format) {
    const formatWrong = formatFault(format, kind);
    if (formatWrong) throw badFormat(formatWrong.path, formatWrong.why);
    if (format["filter"] !== undefined) refuseBadFilter(format["filter"]);
  }
  return {
    name,
    ...(description === undefined ? {} : { description }),
    ...(xKey === undefined ? {} : { xKey }),
    ...shapeOf(kind, draft),
    ...(format ? { format } : {}),
    ...(meta ? { meta } : {}),
    scope: scope ?? "synced",
  };
}

function kindOf(kind: Kind | undefined, format: JsonObject | undefined): Kind {
  if (kind !== undefined) return kind;
  const type = format?.["type"];
  if (isFormatType(type)) return impliedKind(type);
  if (format) throw badFormat("format.type", refusal("format.type"));
  throw refusedAs("request.missing_field", { field: "kind" }, refusal("property.no_kind"));
}

/** The pinned shape: kind, and what is inside an array or object. */
function shapeOf(kind: Kind, { items, properties, required }: PropertyCreateBody): JsonObject {
  const shape = {
    kind,
    ...(items === undefined ? {} : { items }),
    ...(properties === undefined ? {} : { properties }),
    ...(required === undefined ? {} : { required }),
  };
  const fault = shapeDraftFault(shape, "");
  if (!fault) return canonicalShape(shape as Shape) as unknown as JsonObject;
  const field = fault.path.replace(/^\./, "");
  throw refusedPart("request.invalid_field", { field }, fault.why, "colon");
}

function propertyByXKey(type: TypeEntry, xKey: string, except?: string): PropertyDef | undefined {
  return [...type.properties.values()].find((property) => property.xKey === xKey && property.id !== except);
}

function refuseTakenXKey(type: TypeEntry, xKey: string, except?: string): void {
  const property = propertyByXKey(type, xKey, except);
  if (property)
    throw refusedAs(
      "type.xkey_conflict",
      { xKey, existingTypeId: type.id, existingPropId: property.id },
      refusal("property.xkey_taken", { xKey }),
    );
}

function refuseLeaf(path: string, fault: LeafFault | undefined): void {
  if (!fault) return;
  if (fault.kind === "immutable")
    throw refusedAs("property.immutable", { path }, refusal("part.refused", { part: path, why: fault.why }));
  if (fault.kind === "format") throw badFormat(path, fault.why);
  throw refusedPart("request.invalid_field", { field: path }, fault.why, "refused");
}

const badFormat = (path: string, why: Refusal): SvcError =>
  refusedPart("property.format_invalid", { path }, why, "refused");

/** A filter of links must read as filters of queries do. */
function refuseBadFilter(filter: Json): void {
  try {
    parseFilter(filter);
  } catch (error) {
    if (!(error instanceof SvcError && error.refusal)) throw error;
    const { path = "" } = error.details as { path?: string };
    throw badFormat("format.filter", refusal("format.filter_invalid", { path, why: error.refusal }));
  }
}
