import type { WriteTx } from "../../change/space-engine.ts";
import { refusedAs, refusedPart, svcError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { refusal, refusalText } from "../../protocol/refusals.ts";
import type { DatasetDef, DatasetDraft, FieldDraft, LeafPatchBody } from "../../protocol/type.ts";
import { type BuiltInDataset, SPACE_DATASETS } from "./built-in-schemas.ts";
import { isBuiltInType } from "./built-in-types.ts";
import {
  badSearchScope,
  checkConsistent,
  checkDatasetName,
  checkSearchKeys,
  declarationFault,
  readDatasetDraft,
  readFieldDraft,
  readSearchText,
} from "./dataset-draft.ts";
import { definitionLeafFault } from "./dataset-record.ts";
import type { Definition } from "./definition.ts";
import {
  createDefinitionChanges,
  type DefinitionChangesDeps,
  type LeafPatch,
  readLeafPatch,
} from "./definition-changes.ts";
import { DATASET_DEF_RULES, DATASET_FIELD_RULES } from "./definition-rules.ts";
import { definitionSchema } from "./json-schema.ts";
import type { TypeEntry } from "./schema-view.ts";

const LEAVES = new Set(["description", "displayName", "search.title", "search.text", "search.scope"]);
/** What may be removed besides: all of search at once. */
const CONTAINERS = new Set(["search"]);

/** The datasets that types declare. */
export type DatasetService = ReturnType<typeof createDatasetService>;

export function createDatasetService(deps: DefinitionChangesDeps) {
  const { schema } = deps;
  const { view } = schema;
  const definitions = createDefinitionChanges(deps);

  const definitionOf = (type: TypeEntry, defId: string): Definition => {
    const definition = type.definitions.find((each) => each.id === defId);
    if (!definition) throw refusedAs("sdk.not_found", { typeId: type.id, defId }, refusal("definition.unknown"));
    return definition;
  };

  /** Of definitions that were made separately under one name, the oldest owns the name; the others are marked. */
  const shown = (definition: Definition): DatasetDef => {
    const winner = view.definitionByName(definition.declaration.name);
    if (winner === undefined || winner.id === definition.id) return definition.def;
    return {
      ...definition.def,
      invalid: true,
      invalidReason: refusalText(refusal("definition.older_name", { id: winner.id })),
    };
  };

  return {
    /** Of a type by id or xKey. Throws type.not_found. */
    list(typeName: string): DatasetDef[] {
      const typeId = schema.typeId(typeName);
      if (typeId === undefined) throw svcError("type.not_found", { typeId: typeName });
      return isBuiltInType(typeId) ? [] : view.type(typeId)!.definitions.map(shown);
    },

    /**
     * Declares a dataset. With `derived` its id and its fields' follow from their keys, so that devices that declare it apart
     * have declared one; the type's own of that name is adopted. Throws dataset.name_conflict, dataset.decl_invalid,
     * request.invalid_field.
     */
    add(typeName: string, draft: DatasetDraft): Promise<string> {
      const { name, derived } = draft;
      checkDatasetName(name);
      const adopt = ({ id }: TypeEntry): string | undefined => {
        const known = derived ? view.definitionByName(name) : undefined;
        return known?.typeId === id ? known.id : undefined;
      };
      const declare = (type: TypeEntry, tx: WriteTx): string => {
        if (schema.isBuiltInDataset(name) || view.definitionByName(name))
          throw refusedAs("dataset.name_conflict", { name }, refusal("dataset.name_taken", { name }));
        const { definition, fields } = readDatasetDraft(draft);
        const defId = definitions.create(tx, type.id, DATASET_DEF_RULES, definition, derived);
        for (const field of fields)
          definitions.create(tx, type.id, DATASET_FIELD_RULES, { def: defId, ...field }, derived);
        return defId;
      };
      return definitions.changeUnless(adopt, typeName, declare);
    },

    /** Changes display leaves. Throws dataset.immutable, dataset.decl_invalid, sdk.not_found, request.*. */
    patch(typeName: string, defId: string, body: LeafPatchBody): Promise<void> {
      return definitions.change(typeName, (type, tx) => {
        const definition = definitionOf(type, defId);
        const patch = readDisplayPatch(readLeafPatch(body));
        checkSearchKeys(patched(definition.def, patch), new Set(validFields(definition.def).map((field) => field.key)));
        definitions.patch(tx, type.id, DATASET_DEF_RULES, defId, patch);
      });
    },

    /** Removes a definition: records stay, later writes are refused. */
    remove(typeName: string, defId: string): Promise<void> {
      return definitions.change(typeName, (type, tx) => {
        definitions.remove(tx, type.id, DATASET_DEF_RULES, definitionOf(type, defId).id);
      });
    },

    /** Throws dataset.decl_invalid for a field that does not go with the others, or is required. */
    addField(typeName: string, defId: string, draft: FieldDraft): Promise<string> {
      return definitions.change(typeName, (type, tx) => {
        const { def } = definitionOf(type, defId);
        if (draft.required) throw declarationFault("required", refusal("draft.required_initial"));
        const field = readFieldDraft(draft, "");
        checkConsistent(asRecord(def), [...validFields(def), field as unknown as DatasetDef["fields"][number]]);
        return definitions.create(tx, type.id, DATASET_FIELD_RULES, { def: defId, ...field });
      });
    },

    /** Throws dataset.decl_invalid when the rest of the definition needs the field. */
    removeField(typeName: string, defId: string, fieldId: string): Promise<void> {
      return definitions.change(typeName, (type, tx) => {
        const { def } = definitionOf(type, defId);
        const field = def.fields.find((each) => each.id === fieldId);
        if (!field)
          throw refusedAs("sdk.not_found", { typeId: type.id, defId, fieldId }, refusal("definition.unknown_field"));
        if (!field.invalid)
          checkConsistent(
            asRecord(def),
            validFields(def).filter((each) => each.id !== fieldId),
          );
        definitions.remove(tx, type.id, DATASET_FIELD_RULES, fieldId);
      });
    },

    /** Every dataset of the space with the JSON Schema of its records: built in, then declared. */
    listing: (): BuiltInDataset[] => [
      ...SPACE_DATASETS,
      ...view.types().flatMap((type) =>
        type.definitions
          .filter((definition) => view.definitionByName(definition.declaration.name)?.id === definition.id)
          .map((definition) => ({
            name: definition.declaration.name,
            schema: definitionSchema(definition),
            typeId: type.id,
          })),
      ),
    ],
  };
}

const asRecord = (def: DatasetDef): JsonObject => def as unknown as JsonObject;
const validFields = (def: DatasetDef) => def.fields.filter((field) => !field.invalid);

/** Throws dataset.immutable for whatever is not a display leaf, request.invalid_field for a value that it does not take. */
function readDisplayPatch(patch: LeafPatch): LeafPatch {
  for (const path of [...patch.set.map(([path]) => path), ...patch.unset]) {
    if (LEAVES.has(path) || (CONTAINERS.has(path) && patch.unset.includes(path))) continue;
    throw refusedAs("dataset.immutable", { path }, refusal("dataset.pinned", { path, leaves: [...LEAVES] }));
  }
  return {
    unset: patch.unset,
    set: patch.set.map(([path, value]): [string, Json] => {
      const stored = path === "search.text" ? readSearchText(value) : value;
      const why = definitionLeafFault(path.split("."), stored);
      if (path === "search.scope" && why) throw badSearchScope();
      if (why) throw refusedPart("request.invalid_field", { field: path }, why, "refused");
      return [path, stored];
    }),
  };
}

function patched(def: DatasetDef, { set, unset }: LeafPatch): JsonObject {
  const search: JsonObject = unset.includes("search") ? {} : { ...(asRecord(def)["search"] as JsonObject | undefined) };
  for (const path of unset) if (path.startsWith("search.")) delete search[path.slice("search.".length)];
  for (const [path, value] of set) if (path.startsWith("search.")) search[path.slice("search.".length)] = value;
  return { ...asRecord(def), search };
}
