import type { JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal, refusalText } from "../../protocol/refusals.ts";
import type { DatasetDef, FieldDef } from "../../protocol/type.ts";
import { type Declaration, type DeclaredField, encodeDeclaration, versionIdOf } from "./declaration.ts";
import type { Shape } from "./value-kind.ts";

/** A dataset's definition as it stands now, merged from its records. */
export interface Definition {
  readonly id: string;
  readonly typeId: string;
  /** Version of the change that created it: decides between definitions of one name. */
  readonly created: string;
  readonly def: DatasetDef;
  /** What decides how records fold now: the fields without those that have no effect. */
  readonly declaration: Declaration;
  /** The declaration's text and the id of that version. */
  version(): { id: string; text: string };
}

export function createdVersion(record: JsonObject): string {
  return (record["_ver"] as { id: string }).id;
}

/** Oldest first; the same everywhere. */
export function byCreation(a: JsonObject, b: JsonObject): number {
  const [left, right] = [createdVersion(a), createdVersion(b)];
  return left < right ? -1 : left > right ? 1 : (a["id"] as string) < (b["id"] as string) ? -1 : 1;
}

/** Builds a definition from its record and those of its fields; `removed` ones are left out by the caller. */
export function readDefinition(typeId: string, record: JsonObject, fieldRecords: readonly JsonObject[]): Definition {
  const { id, name, idRule, idPattern, idMaxLen, deleteBy, dynamic, skipHistory } = record as unknown as DatasetDef;
  const fields = judgeFields([...fieldRecords].sort(byCreation).map(toFieldDef));
  const declaration: Declaration = {
    typeId,
    defId: id,
    name,
    idRule,
    ...(idPattern === undefined ? {} : { idPattern }),
    ...(idMaxLen === undefined ? {} : { idMaxLen }),
    deleteBy,
    ...(dynamic ? { dynamic } : {}),
    ...(skipHistory ? { skipHistory } : {}),
    fields: fields.filter((field) => !field.invalid).map(toDeclaredField),
  };
  let version: { id: string; text: string } | undefined;
  return {
    id,
    typeId,
    created: createdVersion(record),
    def: { ...(withoutSystem(record) as unknown as DatasetDef), fields },
    declaration,
    version() {
      if (!version) {
        const text = encodeDeclaration(declaration);
        version = { id: versionIdOf(text), text };
      }
      return version;
    },
  };
}

/**
 * Fields that devices added separately may not fit together: the older one stays, and the other is marked and has no effect. A
 * field that only authors may change has no effect without a creator stamp, so that it fails closed.
 */
function judgeFields(fields: readonly FieldDef[]): FieldDef[] {
  const keys = new Set<string>();
  const stamps = new Set<string>();
  let chars = 0;
  const judged = fields.map((field) => {
    const size = JSON.stringify(field).length;
    const why = keys.has(field.key)
      ? refusal("definition.older_key")
      : field.stamp && stamps.has(field.stamp)
        ? refusal("definition.older_stamp")
        : keys.size >= LIMITS.datasetFields || chars + size > LIMITS.declarationChars
          ? refusal("definition.older_full")
          : undefined;
    if (why) return marked(field, why);
    chars += size;
    keys.add(field.key);
    if (field.stamp) stamps.add(field.stamp);
    return field;
  });
  if (stamps.has("creator")) return judged;
  return judged.map((field) =>
    field.mutableBy === "author" && !field.invalid ? marked(field, refusal("definition.no_creator")) : field,
  );
}

const marked = (field: FieldDef, why: Refusal): FieldDef => ({
  ...field,
  invalid: true,
  invalidReason: refusalText(why),
});

function toFieldDef(record: JsonObject): FieldDef {
  const { def: _def, ...field } = withoutSystem(record);
  return field as unknown as FieldDef;
}

function toDeclaredField(field: FieldDef): DeclaredField {
  const { id, key, kind, shape, scope, mutableBy, required, stamp } = field;
  return {
    id,
    key,
    shape: (shape as Shape | undefined) ?? { kind },
    scope,
    mutableBy,
    ...(required ? { required } : {}),
    ...(stamp ? { stamp } : {}),
  };
}

/** A record without what every record has and callers of definitions have no use for. */
export function withoutSystem(record: JsonObject): JsonObject {
  const fields: JsonObject = {};
  for (const [key, value] of Object.entries(record)) if (!key.startsWith("_") && key !== "removed") fields[key] = value;
  return fields;
}
