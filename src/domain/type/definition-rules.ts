/**
 * How the records fold in which a type keeps what it declares. All parts but what is only displayed are pinned by the
 * creating change, against the changes of other devices as well. Nothing is ever deleted: what was removed says so and
 * stays, since values and records made under it do.
 */
import type { RecordOp } from "../../change/codec/change-body.ts";
import type { DatasetRules } from "../../change/codec/dataset-rules.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { definitionLeafFault, definitionRecordFault, fieldRecordFault } from "./dataset-record.ts";
import { decodeDeclaration, definitionName, versionIdOf } from "./declaration.ts";
import {
  DATASET_DEFS_DATASET,
  DATASET_FIELDS_DATASET,
  PROPERTIES_DATASET,
  VERSIONS_DATASET,
} from "./definition-datasets.ts";
import { propertyLeafFault, propertyRecordFault } from "./property-record.ts";

const isRemoval = (segments: readonly string[], op: RecordOp): boolean =>
  segments.length === 1 && segments[0] === "removed" && op.type === "$set" && op.value === true;

/** The fields that a creating change sets, if it does so in the one way there is. */
function createdFields(ops: readonly RecordOp[]): JsonObject | undefined {
  const [op] = ops;
  if (ops.length !== 1 || op?.type !== "$set" || op.path !== "" || !isJsonObject(op.value)) return undefined;
  return Object.keys(op.value).some((key) => key.includes(".")) ? undefined : op.value;
}

function pinnedDataset(
  name: string,
  faults: {
    record(fields: JsonObject): string | undefined;
    leaf(doc: JsonObject, segments: readonly string[], op: RecordOp): string | undefined;
  },
): DatasetRules {
  return {
    name,
    idRule: "auto",
    refuseCreate(_id, ops) {
      const fields = createdFields(ops);
      return fields ? faults.record(fields) : "a definition is created whole, by one $set";
    },
    refuseDelete: () => "definitions are removed, not deleted",
    refuseOp(doc, segments, op, creating) {
      if (creating || isRemoval(segments, op)) return undefined;
      if (op.type !== "$set" && op.type !== "$unset") return "definitions take $set and $unset";
      return faults.leaf(doc, segments, op);
    },
  };
}

export const PROPERTY_RULES = pinnedDataset(PROPERTIES_DATASET, {
  record: propertyRecordFault,
  leaf: (doc, segments, op) => propertyLeafFault(doc, segments, op.type === "$unset" ? undefined : op.value)?.reason,
});

export const DATASET_DEF_RULES = pinnedDataset(DATASET_DEFS_DATASET, {
  record: definitionRecordFault,
  leaf: (_doc, segments, op) => definitionLeafFault(segments, op.type === "$unset" ? undefined : op.value),
});

export const DATASET_FIELD_RULES = pinnedDataset(DATASET_FIELDS_DATASET, {
  record: fieldRecordFault,
  leaf: () => "a field never changes",
});

/** The declaration that a creating op of a version's record brings, if its id is the text's hash. */
function versionText(id: string, ops: readonly RecordOp[]): string | undefined {
  const fields = createdFields(ops);
  const text: Json | undefined = fields?.["declaration"];
  return fields && Object.keys(fields).length === 1 && typeof text === "string" && versionIdOf(text) === id
    ? text
    : undefined;
}

export const VERSION_RULES: DatasetRules = {
  name: VERSIONS_DATASET,
  idRule: "user",
  skipHistory: true,
  refuseCreate(id, ops, envelope) {
    const text = versionText(id, ops);
    const declaration = text === undefined ? undefined : decodeDeclaration(text);
    if (!declaration) return "a version is the declaration that its id is the hash of";
    return declaration.typeId === envelope.objectId ? undefined : "a version is written down on its own type";
  },
  refuseDelete: () => "versions stay",
  refuseOp: (_doc, _segments, _op, creating) => (creating ? undefined : "a version never changes"),
};

/** The versions that a change to the dataset of versions brings: name, id and text of each. */
export function versionsIn(
  objectId: string,
  records: readonly { id: string; upsert?: boolean; ops: readonly RecordOp[] }[],
): { name: string; id: string; text: string }[] {
  return records.flatMap((record) => {
    const text = record.upsert ? versionText(record.id, record.ops) : undefined;
    if (text === undefined || decodeDeclaration(text)?.typeId !== objectId) return [];
    return [{ name: definitionName(objectId, record.id), id: record.id, text }];
  });
}

export const DEFINITION_RULES: readonly DatasetRules[] = [
  PROPERTY_RULES,
  DATASET_DEF_RULES,
  DATASET_FIELD_RULES,
  VERSION_RULES,
];
