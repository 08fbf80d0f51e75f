import { encodeDerivedRoot } from "../change/codec/change-codec.ts";
import type { DatasetRules } from "../change/codec/dataset-rules.ts";
import { changesAboutField, oneRecord } from "../change/codec/rule-parts.ts";
import type { ObjectEntry } from "../change/graph/object-cache.ts";
import type { WriteTx } from "../change/space-engine.ts";
import { cidFromDigest, digestOfCid } from "../crypto/cid.ts";
import type { JsonObject } from "../protocol/json.ts";
import { refusal } from "../protocol/refusals.ts";

/** The derived object in every space that holds what its members share about it: name, description, icon. */
export const SPACE_INDEX_TYPE = "spaceIndex";
export const SPACE_INDEX_DATASET = "space_index";
/** The one record of that dataset. */
export const SPACE_INDEX_RECORD = "space";

export interface SpaceMetadata {
  name?: string;
  description?: string;
  iconCid?: string;
}

export const SPACE_INDEX_RULES: DatasetRules = {
  name: SPACE_INDEX_DATASET,
  idRule: "user",
  ...oneRecord(SPACE_INDEX_RECORD, "metadata.one_record"),
  refuseDelete: () => refusal("metadata.stays"),
  refuseOp: (_doc, segments, op) => (changesAboutField(segments, op) ? undefined : refusal("metadata.field")),
};

/** The id of a space's index object, which is known before anything of the space is here. */
export function spaceIndexIdOf(spaceId: string): string {
  const root = encodeDerivedRoot({ space: digestOfCid(spaceId)!, type: SPACE_INDEX_TYPE, derivation: "" });
  return cidFromDigest(root.id);
}

/** The index object's entry; its root is the same on every device. */
export function spaceIndexIn(tx: WriteTx): ObjectEntry {
  return tx.ensureDerived(SPACE_INDEX_TYPE, "");
}

/** Throws `dataset.validation` for what its rules refuse: nobody is told of a change that is none. */
export function writeSpaceMetadata(tx: WriteTx, metadata: SpaceMetadata): void {
  const index = spaceIndexIn(tx);
  const fields: JsonObject = { ...metadata };
  if (Object.keys(fields).length === 0) return;
  const records = [{ id: SPACE_INDEX_RECORD, upsert: true, ops: [{ type: "$set" as const, path: "", value: fields }] }];
  tx.append(index, { dataset: SPACE_INDEX_DATASET, records }, SPACE_INDEX_RULES);
}
