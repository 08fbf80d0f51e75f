import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { DATASET_NAME, DELETE_RULES, fieldKeyFault, ID_RULES, isIdLength, MUTABLE_BY, STAMPS } from "./declaration.ts";
import { isKind, shapeDraftFault } from "./value-kind.ts";

/** Scope slugs of search (TYPE-3). */
export const SEARCH_SCOPE = /^[a-z0-9_-]{1,64}$/;

const DEF_KEYS = new Set([
  "name",
  "displayName",
  "description",
  "idRule",
  "idPattern",
  "idMaxLen",
  "deleteBy",
  "dynamic",
  "skipHistory",
  "search",
]);
const FIELD_KEYS = new Set([
  "def",
  "key",
  "name",
  "description",
  "kind",
  "shape",
  "scope",
  "required",
  "mutableBy",
  "stamp",
]);

const within = (values: readonly string[], value: Json | undefined): boolean =>
  typeof value === "string" && values.includes(value);
const textOrAbsent = (value: Json | undefined): boolean => value === undefined || typeof value === "string";
const trueOrAbsent = (value: Json | undefined): boolean => value === undefined || value === true;

/** What is wrong with the record of a dataset's definition as it is created, or undefined. */
export function definitionRecordFault(fields: JsonObject): Refusal | undefined {
  const stray = Object.keys(fields).find((key) => !DEF_KEYS.has(key));
  if (stray !== undefined) return refusal("definition.part", { part: stray });
  const { name, displayName, description, idRule, idPattern, idMaxLen, deleteBy, dynamic, skipHistory } = fields;
  if (typeof name !== "string" || !DATASET_NAME.test(name)) return refusal("definition.name");
  if (!textOrAbsent(displayName) || !textOrAbsent(description)) return refusal("definition.displayed");
  if (!within(ID_RULES, idRule)) return refusal("definition.id_rule");
  if (
    idPattern !== undefined &&
    (idRule !== "user" || typeof idPattern !== "string" || idPattern.length > LIMITS.idPatternChars)
  )
    return refusal("definition.id_pattern");
  if (idMaxLen !== undefined && (idRule !== "user" || !isIdLength(idMaxLen))) return refusal("definition.id_max_len");
  if (!within(DELETE_RULES, deleteBy)) return refusal("definition.delete_by");
  if (!trueOrAbsent(dynamic) || !trueOrAbsent(skipHistory)) return refusal("definition.flags");
  const { search } = fields;
  if (search === undefined) return undefined;
  if (!isJsonObject(search)) return refusal("definition.search");
  for (const [leaf, value] of Object.entries(search)) {
    const fault = definitionLeafFault(["search", leaf], value);
    if (fault) return fault;
  }
  return undefined;
}

/** What is wrong with the record of a field as it is created, or undefined. */
export function fieldRecordFault(fields: JsonObject): Refusal | undefined {
  const stray = Object.keys(fields).find((key) => !FIELD_KEYS.has(key));
  if (stray !== undefined) return refusal("definition.field_part", { part: stray });
  const { def, key, name, description, kind, shape, scope, required, mutableBy, stamp } = fields;
  if (typeof def !== "string") return refusal("definition.field_def");
  if (typeof key !== "string" || fieldKeyFault(key)) return refusal("definition.field_key");
  if (!textOrAbsent(name) || !textOrAbsent(description)) return refusal("definition.displayed");
  if (!isKind(kind)) return refusal("definition.field_kind");
  if (shape !== undefined && (shapeDraftFault(shape, "shape") || (shape as JsonObject)["kind"] !== kind))
    return refusal("definition.field_shape");
  if (!within(["synced", "local", "derived"], scope)) return refusal("definition.field_scope");
  if (!within(MUTABLE_BY, mutableBy)) return refusal("definition.field_mutable_by");
  if (!trueOrAbsent(required)) return refusal("definition.field_required");
  if (stamp !== undefined && !within(STAMPS, stamp)) return refusal("definition.field_stamp");
  if ((stamp === undefined) === (scope === "derived")) return refusal("definition.field_derived");
  if (stamp !== undefined && kind !== (stamp === "creator" ? "string" : "datetime"))
    return refusal("definition.field_stamp_kind");
  return undefined;
}

/** Whether a path of a definition is a display leaf that may be set to a value, or (undefined) removed. */
export function definitionLeafFault(segments: readonly string[], value: Json | undefined): Refusal | undefined {
  const [top, leaf, ...below] = segments;
  if (top === "displayName" || top === "description") {
    if (leaf !== undefined) return refusal("definition.nothing_below", { path: top });
    return textOrAbsent(value) ? undefined : refusal("definition.leaf_string", { path: top });
  }
  if (top !== "search") return refusal("definition.part_pinned");
  if (leaf === undefined) return value === undefined ? undefined : refusal("definition.search_leaves");
  if (below.length > 0) return refusal("definition.search_below");
  switch (leaf) {
    case "title":
      return textOrAbsent(value) ? undefined : refusal("definition.search_title");
    case "text":
      return value === undefined || textKeys(value) ? undefined : refusal("definition.search_text");
    case "scope":
      return value === undefined || (typeof value === "string" && SEARCH_SCOPE.test(value))
        ? undefined
        : refusal("definition.search_scope");
    default:
      return refusal("definition.search_parts");
  }
}

/** The keys of `search.text`, or undefined when it is neither a key nor a list of different keys. */
export function textKeys(value: Json): string[] | undefined {
  if (typeof value === "string") return [value];
  if (!Array.isArray(value) || value.length === 0 || !value.every((key) => typeof key === "string")) return undefined;
  return new Set(value).size === value.length ? value : undefined;
}
