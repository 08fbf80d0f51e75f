import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
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
export function definitionRecordFault(fields: JsonObject): string | undefined {
  const stray = Object.keys(fields).find((key) => !DEF_KEYS.has(key));
  if (stray !== undefined) return `a definition has no ${stray}`;
  const { name, displayName, description, idRule, idPattern, idMaxLen, deleteBy, dynamic, skipHistory } = fields;
  if (typeof name !== "string" || !DATASET_NAME.test(name)) return "the name is outside its grammar";
  if (!textOrAbsent(displayName) || !textOrAbsent(description)) return "what is displayed is a text";
  if (!within(ID_RULES, idRule)) return "idRule is unknown";
  if (
    idPattern !== undefined &&
    (idRule !== "user" || typeof idPattern !== "string" || idPattern.length > LIMITS.idPatternChars)
  )
    return "idPattern is refused";
  if (idMaxLen !== undefined && (idRule !== "user" || !isIdLength(idMaxLen))) return "idMaxLen is refused";
  if (!within(DELETE_RULES, deleteBy)) return "deleteBy is unknown";
  if (!trueOrAbsent(dynamic) || !trueOrAbsent(skipHistory)) return "dynamic and skipHistory are true or absent";
  const { search } = fields;
  if (search === undefined) return undefined;
  if (!isJsonObject(search)) return "search is an object";
  for (const [leaf, value] of Object.entries(search)) {
    const fault = definitionLeafFault(["search", leaf], value);
    if (fault) return fault;
  }
  return undefined;
}

/** What is wrong with the record of a field as it is created, or undefined. */
export function fieldRecordFault(fields: JsonObject): string | undefined {
  const stray = Object.keys(fields).find((key) => !FIELD_KEYS.has(key));
  if (stray !== undefined) return `a field has no ${stray}`;
  const { def, key, name, description, kind, shape, scope, required, mutableBy, stamp } = fields;
  if (typeof def !== "string") return "a field names its definition";
  if (typeof key !== "string" || fieldKeyFault(key)) return "the key is refused";
  if (!textOrAbsent(name) || !textOrAbsent(description)) return "what is displayed is a text";
  if (!isKind(kind)) return "kind is unknown";
  if (shape !== undefined && (shapeDraftFault(shape, "shape") || (shape as JsonObject)["kind"] !== kind))
    return "shape is refused";
  if (!within(["synced", "local", "derived"], scope)) return "scope is unknown";
  if (!within(MUTABLE_BY, mutableBy)) return "mutableBy is unknown";
  if (!trueOrAbsent(required)) return "required is true or absent";
  if (stamp !== undefined && !within(STAMPS, stamp)) return "stamp is unknown";
  if ((stamp === undefined) === (scope === "derived")) return "stamped fields, and only they, are derived";
  if (stamp !== undefined && kind !== (stamp === "creator" ? "string" : "datetime"))
    return "the stamp has another kind";
  return undefined;
}

/** Whether a path of a definition is a display leaf that may be set to a value, or (undefined) removed. */
export function definitionLeafFault(segments: readonly string[], value: Json | undefined): string | undefined {
  const [top, leaf, ...below] = segments;
  if (top === "displayName" || top === "description") {
    if (leaf !== undefined) return `there is nothing below ${top}`;
    return textOrAbsent(value) ? undefined : `${top} is a string`;
  }
  if (top !== "search") return "this part of a definition never changes";
  if (leaf === undefined) return value === undefined ? undefined : "search is set leaf by leaf";
  if (below.length > 0) return "there is nothing below";
  switch (leaf) {
    case "title":
      return textOrAbsent(value) ? undefined : "title is a field's key";
    case "text":
      return value === undefined || textKeys(value) ? undefined : "text is a field's key or a list of different keys";
    case "scope":
      return value === undefined || (typeof value === "string" && SEARCH_SCOPE.test(value))
        ? undefined
        : "scope is 1 to 64 characters of a-z, 0-9, _ and -";
    default:
      return "search has title, text and scope";
  }
}

/** The keys of `search.text`, or undefined when it is neither a key nor a list of different keys. */
export function textKeys(value: Json): string[] | undefined {
  if (typeof value === "string") return [value];
  if (!Array.isArray(value) || value.length === 0 || !value.every((key) => typeof key === "string")) return undefined;
  return new Set(value).size === value.length ? value : undefined;
}
