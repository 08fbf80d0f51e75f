import { bytesToBase58 } from "../../base/base58.ts";
import { concatBytes, utf8ToBytes } from "../../base/bytes.ts";
import type { ObjectId } from "../../base/ids.ts";
import { digestOfCid } from "../../crypto/cid.ts";
import { sha256 } from "../../crypto/hash.ts";
import { isJsonObject, type Json } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { canonicalShape, keyFault, type Shape, shapeDraftFault } from "./value-kind.ts";

export const ID_RULES = ["auto", "user"] as const;
export const DELETE_RULES = ["anyone", "author"] as const;
export const MUTABLE_BY = ["never", "author", "any"] as const;
export const STAMPS = ["creator", "createTime", "modifyTime"] as const;
export type StampName = (typeof STAMPS)[number];

/** A declared field, without what only describes it. */
export interface DeclaredField {
  readonly id: string;
  readonly key: string;
  readonly shape: Shape;
  readonly scope: "synced" | "local" | "derived";
  readonly mutableBy: (typeof MUTABLE_BY)[number];
  readonly required?: true;
  readonly stamp?: StampName;
}

/**
 * One version of a dataset's definition: everything that decides how a record folds, and nothing else. It is known by
 * the hash of its canonical text, so that a change can name it and every device folds the change under the very same
 * rules, whatever became of the definition since.
 */
export interface Declaration {
  readonly typeId: string;
  readonly defId: string;
  readonly name: string;
  readonly idRule: (typeof ID_RULES)[number];
  readonly idPattern?: string;
  readonly idMaxLen?: number;
  readonly deleteBy: (typeof DELETE_RULES)[number];
  readonly dynamic?: true;
  readonly skipHistory?: true;
  /** By id. */
  readonly fields: readonly DeclaredField[];
}

export const DATASET_NAME = /^[a-z0-9_][a-z0-9_-]{0,63}$/;
export const DEFAULT_ID_PATTERN = "[A-Za-z0-9._:-]+";
export const DEFAULT_ID_MAX_LENGTH = 128;

const VERSION_TAG = utf8ToBytes("svc/definition/v1\0");
const VERSION_BYTES = 20;

/** The one text of a declaration: fixed key order, fields by id, defaults left out. */
export function encodeDeclaration(declaration: Declaration): string {
  const { typeId, defId, name, idRule, idPattern, idMaxLen, deleteBy, dynamic, skipHistory } = declaration;
  const fields = [...declaration.fields].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)).map(canonicalField);
  return JSON.stringify({
    typeId,
    defId,
    name,
    idRule,
    ...(idPattern === undefined ? {} : { idPattern }),
    ...(idMaxLen === undefined ? {} : { idMaxLen }),
    deleteBy,
    ...(dynamic ? { dynamic } : {}),
    ...(skipHistory ? { skipHistory } : {}),
    fields,
  });
}

function canonicalField(field: DeclaredField): DeclaredField {
  const { id, key, shape, scope, mutableBy, required, stamp } = field;
  return {
    id,
    key,
    shape: canonicalShape(shape),
    scope,
    mutableBy,
    ...(required ? { required } : {}),
    ...(stamp ? { stamp } : {}),
  };
}

/** Id of a version: base58 of the first 20 bytes of a hash of its text. */
export function versionIdOf(text: string): string {
  return bytesToBase58(sha256(concatBytes(VERSION_TAG, utf8ToBytes(text))).subarray(0, VERSION_BYTES));
}

/** What a change names: where the version is written down, and its id. */
export function definitionName(typeId: string, versionId: string): string {
  return `${typeId}/${versionId}`;
}

/** The parts of a definition's name, or undefined when it is none. */
export function parseDefinitionName(name: string): { typeId: ObjectId; versionId: string } | undefined {
  const slash = name.indexOf("/");
  const typeId = name.slice(0, slash);
  const versionId = name.slice(slash + 1);
  if (slash < 0 || !digestOfCid(typeId) || !/^[1-9A-HJ-NP-Za-km-z]{1,28}$/.test(versionId)) return undefined;
  return { typeId: typeId as ObjectId, versionId };
}

/**
 * Reads a declaration's text. Undefined unless it is well-formed and canonical, so that a version has one text; whatever
 * a member with another program may have written, nothing else is ever folded under.
 */
export function decodeDeclaration(text: string): Declaration | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isDeclaration(parsed)) return undefined;
  return encodeDeclaration(parsed) === text ? parsed : undefined;
}

const oneOf = (values: readonly string[], value: Json | undefined): boolean =>
  typeof value === "string" && values.includes(value);
const trueOrAbsent = (value: Json | undefined): boolean => value === undefined || value === true;

function isDeclaration(value: unknown): value is Declaration {
  if (!isJsonObject(value)) return false;
  const { typeId, defId, name, idRule, idPattern, idMaxLen, deleteBy, dynamic, skipHistory, fields } = value;
  return (
    typeof typeId === "string" &&
    digestOfCid(typeId) !== undefined &&
    typeof defId === "string" &&
    typeof name === "string" &&
    DATASET_NAME.test(name) &&
    oneOf(ID_RULES, idRule) &&
    (idPattern === undefined ||
      (idRule === "user" && typeof idPattern === "string" && idPattern.length <= LIMITS.idPatternChars)) &&
    (idMaxLen === undefined || (idRule === "user" && isIdLength(idMaxLen))) &&
    oneOf(DELETE_RULES, deleteBy) &&
    trueOrAbsent(dynamic) &&
    trueOrAbsent(skipHistory) &&
    Array.isArray(fields) &&
    fields.length <= LIMITS.datasetFields &&
    fields.every(isField) &&
    new Set(fields.map((field) => (field as { key: string }).key)).size === fields.length
  );
}

function isField(value: Json): boolean {
  if (!isJsonObject(value)) return false;
  const { id, key, shape, scope, mutableBy, required, stamp } = value;
  return (
    typeof id === "string" &&
    typeof key === "string" &&
    fieldKeyFault(key) === undefined &&
    shapeDraftFault(shape, "shape") === undefined &&
    oneOf(["synced", "local", "derived"], scope) &&
    oneOf(MUTABLE_BY, mutableBy) &&
    trueOrAbsent(required) &&
    (stamp === undefined ? scope !== "derived" : oneOf(STAMPS, stamp) && scope === "derived")
  );
}

export function isIdLength(value: Json): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1 && value <= LIMITS.recordIdChars;
}

/** What is wrong with the key of a field, or undefined: a key of a record, at its top. */
export function fieldKeyFault(key: string): Refusal | undefined {
  if (key === "id") return refusal("key.id");
  if (key.startsWith("_")) return refusal("key.reserved");
  return keyFault(key);
}
