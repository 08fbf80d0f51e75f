import { refusedPart, type SvcError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { DatasetDraft, FieldDef, FieldDraft } from "../../protocol/type.ts";
import { SEARCH_SCOPE, textKeys } from "./dataset-record.ts";
import { DATASET_NAME, DELETE_RULES, fieldKeyFault, ID_RULES, isIdLength, MUTABLE_BY, STAMPS } from "./declaration.ts";
import { compileIdPattern } from "./declared-rules.ts";
import { canonicalShape, isKind, type Kind, type Shape, shapeDraftFault } from "./value-kind.ts";

/** Names with a meaning of their own where datasets are named. */
const RESERVED_NAMES = new Set(["prop", "schema"]);

/** A declaration as records: of the definition, and of its fields without the id of the definition. */
export interface DraftRecords {
  definition: JsonObject;
  fields: JsonObject[];
}

export const declarationFault = (path: string, why: Refusal): SvcError =>
  refusedPart("dataset.decl_invalid", { path }, why, "colon");

const refusedField = (field: string, why: Refusal): SvcError =>
  refusedPart("request.invalid_field", { field }, why, "refused");

/** Throws request.invalid_field for a name that no dataset may have. */
export function checkDatasetName(name: string): void {
  if (!DATASET_NAME.test(name)) throw refusedField("name", refusal("draft.name"));
  if (RESERVED_NAMES.has(name)) throw refusedField("name", refusal("draft.name_reserved"));
}

/** Reads a draft of a dataset. Throws dataset.decl_invalid, and request.invalid_field for names and search scopes. */
export function readDatasetDraft(draft: DatasetDraft): DraftRecords {
  checkDatasetName(draft.name);
  const { name, displayName, description, idPattern, idMaxLen, dynamic, skipHistory } = draft;
  const idRule = within("idRule", ID_RULES, draft.idRule ?? "auto");
  const deleteBy = within("deleteBy", DELETE_RULES, draft.deleteBy ?? "anyone");
  if (idRule !== "user") {
    if (idPattern !== undefined) throw declarationFault("idPattern", refusal("draft.id_rule_user"));
    if (idMaxLen !== undefined) throw declarationFault("idMaxLen", refusal("draft.id_rule_user"));
  }
  if (idMaxLen !== undefined && !isIdLength(idMaxLen)) throw declarationFault("idMaxLen", refusal("draft.id_max_len"));
  if (idPattern !== undefined && (idPattern.length > LIMITS.idPatternChars || !compileIdPattern(idPattern, idMaxLen)))
    throw declarationFault("idPattern", refusal("draft.id_pattern"));
  const fields = draft.fields.map((field, index) => readFieldDraft(field, `fields[${index}]`));
  const definition: JsonObject = {
    name,
    ...(displayName === undefined ? {} : { displayName }),
    ...(description === undefined ? {} : { description }),
    idRule,
    ...(idPattern === undefined ? {} : { idPattern }),
    ...(idMaxLen === undefined ? {} : { idMaxLen }),
    deleteBy,
    ...(dynamic ? { dynamic } : {}),
    ...(skipHistory ? { skipHistory } : {}),
    ...(draft.search ? { search: readSearch(draft.search) } : {}),
  };
  checkConsistent(definition, fields as unknown as FieldDef[]);
  return { definition, fields };
}

/** The record of a field. Throws dataset.decl_invalid. */
export function readFieldDraft(draft: FieldDraft, path: string): JsonObject {
  const at = (leaf: string) => (path === "" ? leaf : `${path}.${leaf}`);
  const keyWrong = fieldKeyFault(draft.key);
  if (keyWrong) throw declarationFault(at("key"), keyWrong);
  const stamp = draft.stamp === undefined ? undefined : within(at("stamp"), STAMPS, draft.stamp);
  const shape = readShape(draft.shape as Json | undefined, at("shape"));
  const kind = readKind(draft.kind, shape, stamp, at("kind"));
  const mutableBy = within(at("mutableBy"), MUTABLE_BY, draft.mutableBy ?? "never");
  const scope = within(at("scope"), ["synced", "local", "derived"], draft.scope ?? (stamp ? "derived" : "synced"));
  if (stamp === undefined && scope === "derived") throw declarationFault(at("scope"), refusal("draft.scope"));
  if (stamp !== undefined) {
    if (scope === "local") throw declarationFault(at("scope"), refusal("draft.stamped_scope"));
    if (draft.mutableBy !== undefined && mutableBy !== "never")
      throw declarationFault(at("mutableBy"), refusal("draft.stamped_mutable"));
    if (draft.required) throw declarationFault(at("required"), refusal("draft.stamped_required"));
  }
  if (draft.required && scope !== "synced") throw declarationFault(at("required"), refusal("draft.required_scope"));
  const { key, name, description } = draft;
  return {
    key,
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
    kind,
    ...(shape && (shape.items || shape.properties || shape.required)
      ? { shape: canonicalShape(shape) as unknown as JsonObject }
      : {}),
    scope: stamp ? "derived" : scope,
    ...(draft.required ? { required: true } : {}),
    mutableBy,
    ...(stamp ? { stamp } : {}),
  };
}

function readShape(draft: Json | undefined, path: string): Shape | undefined {
  if (draft === undefined) return undefined;
  const fault = shapeDraftFault(draft, path);
  if (fault) throw declarationFault(fault.path, fault.why);
  return draft as unknown as Shape;
}

/** What is said, or what shape or stamp mean, or a string; these must not contradict each other. */
function readKind(given: string | undefined, shape: Shape | undefined, stamp: string | undefined, path: string): Kind {
  if (given !== undefined && !isKind(given)) throw declarationFault(path, refusal("draft.kind"));
  const stamped: Kind | undefined = stamp === undefined ? undefined : stamp === "creator" ? "string" : "datetime";
  const kind = given ?? shape?.kind ?? stamped ?? "string";
  if (shape && shape.kind !== kind) throw declarationFault(path, refusal("draft.shape_kind", { kind: shape.kind }));
  if (stamped && stamped !== kind)
    throw declarationFault(path, refusal("draft.stamp_kind", { stamp: stamp!, kind: stamped }));
  return kind;
}

function readSearch(search: NonNullable<DatasetDraft["search"]>): JsonObject {
  const { title, text, scope } = search;
  if (scope !== undefined && !SEARCH_SCOPE.test(scope)) throw badSearchScope();
  return {
    ...(title === undefined ? {} : { title }),
    ...(text === undefined ? {} : { text: readSearchText(text) }),
    ...(scope === undefined ? {} : { scope }),
  };
}

export function badSearchScope(): SvcError {
  return refusedField("search.scope", refusal("draft.search_scope"));
}

/** `search.text` as it is stored: one key by itself, several as a list. */
export function readSearchText(text: Json): Json {
  const keys = textKeys(text);
  if (!keys) throw declarationFault("search.text", refusal("draft.search_text"));
  return keys.length === 1 ? keys[0]! : keys;
}

function within<const T extends readonly string[]>(path: string, values: T, value: string): T[number] {
  if (!values.includes(value)) throw declarationFault(path, refusal("value.one_of", { values }));
  return value;
}

/** What fields and definition must hold together for. Throws dataset.decl_invalid. */
export function checkConsistent(definition: JsonObject, fields: readonly FieldDef[]): void {
  const keys = new Set<string>();
  const stamps = new Set<string>();
  if (fields.length > LIMITS.datasetFields) throw declarationFault("fields", refusal("draft.fields"));
  if (JSON.stringify(fields).length > LIMITS.declarationChars)
    throw declarationFault("fields", refusal("draft.fields_chars"));
  for (const { key, stamp } of fields) {
    if (keys.has(key)) throw declarationFault(`fields.${key}`, refusal("draft.key_twice"));
    keys.add(key);
    if (stamp !== undefined) {
      if (stamps.has(stamp)) throw declarationFault(`fields.${key}.stamp`, refusal("draft.stamp_twice", { stamp }));
      stamps.add(stamp);
    }
  }
  if (!stamps.has("creator")) {
    if (definition["deleteBy"] === "author") throw declarationFault("deleteBy", refusal("draft.no_creator"));
    const byAuthor = fields.find((field) => field.mutableBy === "author");
    if (byAuthor) throw declarationFault(`fields.${byAuthor.key}.mutableBy`, refusal("draft.no_creator"));
  }
  checkSearchKeys(definition, keys);
}

/** The fields that search names are there, unless any key may be. Throws dataset.decl_invalid. */
export function checkSearchKeys(definition: JsonObject, keys: ReadonlySet<string>): void {
  if (definition["dynamic"] === true) return;
  const { title, text } = (definition["search"] ?? {}) as { title?: string; text?: Json };
  if (title !== undefined && !keys.has(title))
    throw declarationFault("search.title", refusal("draft.no_field", { key: title }));
  const unknown = text === undefined ? undefined : textKeys(text)?.find((key) => !keys.has(key));
  if (unknown !== undefined) throw declarationFault("search.text", refusal("draft.no_field", { key: unknown }));
}
