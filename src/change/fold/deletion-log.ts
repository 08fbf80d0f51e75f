import { digestOfCid } from "../../crypto/cid.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { DatasetRules } from "../codec/dataset-rules.ts";

/**
 * Deleting an object is a record in the space's deletion log, a derived object of its own: grow-only, keyed by the id of
 * the deleted object. Whether the entry counts is judged like any other change.
 */
export const DELETIONS_DATASET = "deletions";
export const DELETIONS_TYPE = "svc.deletions";

export const DELETION_RULES: DatasetRules = {
  name: DELETIONS_DATASET,
  idRule: "user",
  skipHistory: true,
  refuseCreate(id, _ops, { objectId }) {
    if (id === objectId) return refusal("deletion.of_itself");
    return digestOfCid(id) ? undefined : refusal("id.is_no", { what: "object" });
  },
  refuseDelete: () => refusal("deletion.final"),
  refuseOp: () => refusal("deletion.bare"),
  stamps: (_doc, creating, envelope) =>
    creating
      ? [
          [["by"], envelope.author],
          [["at"], { $date: new Date(envelope.timeMs).toISOString() }],
        ]
      : [],
};

/** When an entry of the log was made, in Unix milliseconds. */
export function deletedAtMs(entry: JsonObject): number {
  const at = entry["at"] as { $date?: string } | undefined;
  return at?.$date ? Date.parse(at.$date) : 0;
}
