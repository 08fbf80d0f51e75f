/**
 * The rules for the records in which a type keeps what it declares. The creating change fixes every part except those that are
 * only displayed, also against changes of other devices. Nothing is ever deleted: a removed record is marked and stays, because
 * the values and records that were made under it stay.
 */
import type { RecordOp } from "../../change/codec/change-body.ts";
import type { DatasetRules } from "../../change/codec/dataset-rules.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { definitionLeafFault, definitionRecordFault, fieldRecordFault } from "./dataset-record.ts";
import { decodeDeclaration, definitionName, versionIdOf } from "./declaration.ts";
import { type DeclarationDataset, derivedDeclarationId } from "./declaration-id.ts";
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

/** What an op leaves at its path; undefined where it removes. */
const assignedBy = (op: RecordOp): Json | undefined => (op.type === "$unset" ? undefined : op.value);

function pinnedDataset(
  name: DeclarationDataset,
  faults: {
    record(fields: JsonObject): Refusal | undefined;
    leaf(doc: JsonObject, segments: readonly string[], op: RecordOp): Refusal | undefined;
  },
): DatasetRules {
  return {
    name,
    idRule: "auto",
    derivedId(ops, { objectId }) {
      const fields = createdFields(ops);
      return fields && derivedDeclarationId(objectId, name, fields);
    },
    refuseCreate(_id, ops) {
      const fields = createdFields(ops);
      return fields ? faults.record(fields) : refusal("definition.not_whole");
    },
    refuseDelete: () => refusal("definition.stays"),
    refuseOp(doc, segments, op, creating) {
      if (creating || isRemoval(segments, op)) return undefined;
      if (op.type !== "$set" && op.type !== "$unset") return refusal("definition.op");
      return faults.leaf(doc, segments, op);
    },
  };
}

export const PROPERTY_RULES = pinnedDataset(PROPERTIES_DATASET, {
  record: propertyRecordFault,
  leaf: (doc, segments, op) => propertyLeafFault(doc, segments, assignedBy(op))?.why,
});

export const DATASET_DEF_RULES = pinnedDataset(DATASET_DEFS_DATASET, {
  record: definitionRecordFault,
  leaf: (_doc, segments, op) => definitionLeafFault(segments, assignedBy(op)),
});

export const DATASET_FIELD_RULES = pinnedDataset(DATASET_FIELDS_DATASET, {
  record: fieldRecordFault,
  leaf: () => refusal("definition.field_pinned"),
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
    if (!declaration) return refusal("version.not_its_hash");
    return declaration.typeId === envelope.objectId ? undefined : refusal("version.of_another_type");
  },
  refuseDelete: () => refusal("version.stays"),
  refuseOp: (_doc, _segments, _op, creating) => (creating ? undefined : refusal("version.pinned")),
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
