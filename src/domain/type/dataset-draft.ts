import { type SvcError, svcError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
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

export function declarationFault(path: string, reason: string): SvcError {
  return svcError("dataset.decl_invalid", { path, reason }, `${path}: ${reason}`);
}

function refusedField(field: string, reason: string): SvcError {
  return svcError("request.invalid_field", { field, reason }, `${field} is refused: ${reason}`);
}

/** Throws request.invalid_field for a name that no dataset may have. */
export function checkDatasetName(name: string): void {
  if (!DATASET_NAME.test(name)) throw refusedField("name", "1 to 64 characters of a-z, 0-9, _ and -, the first no -");
  if (RESERVED_NAMES.has(name)) throw refusedField("name", "the name is reserved");
}

/** Reads a draft of a dataset. Throws dataset.decl_invalid, and request.invalid_field for names and search scopes. */
export function readDatasetDraft(draft: DatasetDraft): DraftRecords {
  checkDatasetName(draft.name);
  const { name, displayName, description, idPattern, idMaxLen, dynamic, skipHistory } = draft;
  const idRule = within("idRule", ID_RULES, draft.idRule ?? "auto");
  const deleteBy = within("deleteBy", DELETE_RULES, draft.deleteBy ?? "anyone");
  if (idRule !== "user") {
    if (idPattern !== undefined) throw declarationFault("idPattern", "goes with idRule user only");
    if (idMaxLen !== undefined) throw declarationFault("idMaxLen", "goes with idRule user only");
  }
  if (idPattern !== undefined && (idPattern.length > LIMITS.idPatternChars || !compileIdPattern(idPattern)))
    throw declarationFault(
      "idPattern",
      `RE2 syntax of at most ${LIMITS.idPatternChars} characters (no lookaround, no backreferences)`,
    );
  if (idMaxLen !== undefined && !isIdLength(idMaxLen))
    throw declarationFault("idMaxLen", `an integer from 1 to ${LIMITS.recordIdChars}`);
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
  if (stamp === undefined && scope === "derived") throw declarationFault(at("scope"), "synced or local");
  if (stamp !== undefined) {
    if (scope === "local") throw declarationFault(at("scope"), "a stamped field is derived");
    if (draft.mutableBy !== undefined && mutableBy !== "never")
      throw declarationFault(at("mutableBy"), "a stamped field is the server's");
    if (draft.required) throw declarationFault(at("required"), "a stamped field is always there");
  }
  if (draft.required && scope !== "synced") throw declarationFault(at("required"), "only a synced field is required");
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
  if (fault) throw declarationFault(fault.path, fault.reason);
  return draft as unknown as Shape;
}

/** What is said, or what shape or stamp mean, or a string; these must not contradict each other. */
function readKind(given: string | undefined, shape: Shape | undefined, stamp: string | undefined, path: string): Kind {
  if (given !== undefined && !isKind(given))
    throw declarationFault(path, "string, number, boolean, array, object or datetime");
  const stamped: Kind | undefined = stamp === undefined ? undefined : stamp === "creator" ? "string" : "datetime";
  const kind = given ?? shape?.kind ?? stamped ?? "string";
  if (shape && shape.kind !== kind) throw declarationFault(path, `the shape says ${shape.kind}`);
  if (stamped && stamped !== kind) throw declarationFault(path, `the stamp ${stamp} is of kind ${stamped}`);
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
  return refusedField("search.scope", "1 to 64 characters of a-z, 0-9, _ and -");
}

/** `search.text` as it is stored: one key by itself, several as a list. */
export function readSearchText(text: Json): Json {
  const keys = textKeys(text);
  if (!keys) throw declarationFault("search.text", "a field's key, or a list of different keys");
  return keys.length === 1 ? keys[0]! : keys;
}

function within<const T extends readonly string[]>(path: string, values: T, value: string): T[number] {
  if (!values.includes(value)) throw declarationFault(path, `one of ${values.join(", ")}`);
  return value;
}

/** What fields and definition must hold together for. Throws dataset.decl_invalid. */
export function checkConsistent(definition: JsonObject, fields: readonly FieldDef[]): void {
  const keys = new Set<string>();
  const stamps = new Set<string>();
  if (fields.length > LIMITS.datasetFields) throw declarationFault("fields", `at most ${LIMITS.datasetFields} fields`);
  if (JSON.stringify(fields).length > LIMITS.declarationChars)
    throw declarationFault("fields", `fields take at most ${LIMITS.declarationChars} characters together`);
  for (const { key, stamp } of fields) {
    if (keys.has(key)) throw declarationFault(`fields.${key}`, "two fields have this key");
    keys.add(key);
    if (stamp !== undefined) {
      if (stamps.has(stamp)) throw declarationFault(`fields.${key}.stamp`, `two fields have the stamp ${stamp}`);
      stamps.add(stamp);
    }
  }
  if (!stamps.has("creator")) {
    if (definition["deleteBy"] === "author")
      throw declarationFault("deleteBy", "author needs a field with the stamp creator");
    const byAuthor = fields.find((field) => field.mutableBy === "author");
    if (byAuthor)
      throw declarationFault(`fields.${byAuthor.key}.mutableBy`, "author needs a field with the stamp creator");
  }
  checkSearchKeys(definition, keys);
}

/** The fields that search names are there, unless any key may be. Throws dataset.decl_invalid. */
export function checkSearchKeys(definition: JsonObject, keys: ReadonlySet<string>): void {
  if (definition["dynamic"] === true) return;
  const { title, text } = (definition["search"] ?? {}) as { title?: string; text?: Json };
  if (title !== undefined && !keys.has(title)) throw declarationFault("search.title", `there is no field ${title}`);
  const unknown = text === undefined ? undefined : textKeys(text)?.find((key) => !keys.has(key));
  if (unknown !== undefined) throw declarationFault("search.text", `there is no field ${unknown}`);
}
