import type { DatasetRules, FieldScope } from "../../change/codec/dataset-rules.ts";
import { changesAboutField, namedBy, oneRecord, setsText } from "../../change/codec/rule-parts.ts";
import { parsePeerId } from "../../crypto/peer-id.ts";
import { isJsonObject, type Json } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";

/** The tech space: derived, one per account, never listed. What all devices of the account share lies here. */
export const TECH_SPACE_NAME = "tech";
export const TECH_INDEX_TYPE = "svc.tech";
const SPACES_DATASET = "spaces";
const PROFILE_DATASET = "profile";
export const DEVICES_DATASET = "devices";
/** The one record of the profile dataset. */
export const PROFILE_RECORD = "profile";

/** Fields of a `spaces` row that are this device's own. */
const SPACE_LOCAL_FIELDS = new Set(["ownRole", "push", "spaceIndexObjectId"]);

/** Fields of a `spaces` row that keep their first value. */
export const SET_ONCE: ReadonlySet<string> = new Set(["spaceType", "author", "derived"]);

export const SPACES_RULES: DatasetRules = {
  name: SPACES_DATASET,
  idRule: "user",
  skipHistory: true,
  ...namedBy("space"),
  refuseDelete: () => refusal("space_row.stays"),
  refuseOp(doc, segments, op) {
    const [field] = segments;
    if (SPACE_LOCAL_FIELDS.has(field!)) return refusal("space_row.local");
    if (field === "createdAt") return refusal("field.scope", { scope: "derived" });
    // The tombstone of a space is set once and never taken back, so that statuses written at the same time cannot disagree
    // about it.
    if (field === "final" && (op.type !== "$set" || op.value !== true)) return refusal("space_row.final");
    return SET_ONCE.has(field!) && Object.hasOwn(doc, field!) ? refusal("field.set_once") : undefined;
  },
  stamps(doc, creating, envelope) {
    const stamps: [string[], Json][] = [];
    if (creating) stamps.push([["createdAt"], { $date: new Date(envelope.timeMs).toISOString() }]);
    if (doc["final"] === true && doc["status"] !== "deleted") stamps.push([["status"], "deleted"]);
    return stamps;
  },
  scopeOf: (segments): FieldScope =>
    SPACE_LOCAL_FIELDS.has(segments[0]!) ? "local" : segments[0] === "createdAt" ? "derived" : "synced",
};

export const PROFILE_RULES: DatasetRules = {
  name: PROFILE_DATASET,
  idRule: "user",
  skipHistory: true,
  ...oneRecord(PROFILE_RECORD, "profile.one_record"),
  refuseDelete: () => refusal("profile.stays"),
  refuseOp: (_doc, segments, op) => (changesAboutField(segments, op) ? undefined : refusal("profile.field")),
};

export const DEVICES_RULES: DatasetRules = {
  name: DEVICES_DATASET,
  idRule: "user",
  skipHistory: true,
  refuseCreate: (id) => (parsePeerId(id) ? undefined : refusal("id.is_no", { what: "peer" })),
  refuseOp(_doc, segments, op) {
    const [field, slug] = segments;
    if (field === "name" || field === "os" || field === "version")
      return setsText(op) && segments.length === 1 ? undefined : refusal("field.text");
    if (field === "apps" && slug) return undefined;
    if (field === "activeClaims" && segments.length === 2)
      return op.type === "$unset" || isJsonObject(op.value) ? undefined : refusal("device.claim");
    return refusal("device.field");
  },
};

export const TECH_RULES: readonly DatasetRules[] = [SPACES_RULES, PROFILE_RULES, DEVICES_RULES];
