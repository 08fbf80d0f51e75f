import type { DatasetRules, FieldScope, Stamp } from "../../change/codec/dataset-rules.ts";
import { OBJECTS_DATASET } from "../../change/fold/projection.ts";
import { refusal } from "../../protocol/refusals.ts";

/** Fields at the root of an object's row that the server derives. */
const DERIVED_FIELDS = new Set(["author", "createdAt", "modifiedAt", "spaceId"]);
/** Counters of a chat are private to a device; its notify mode is private to the account. */
const LOCAL_CHAT_FIELDS = new Set(["unreadCount", "unreadMentions", "unreadReactionsCount"]);

const scopeOf = (segments: readonly string[]): FieldScope => {
  const [namespace, property] = segments;
  if (DERIVED_FIELDS.has(namespace!)) return "derived";
  if (namespace === "chat" && property !== undefined && LOCAL_CHAT_FIELDS.has(property)) return "local";
  if (namespace === "chat" && property === "notifyMode") return "account";
  return "synced";
};

/** The collection of all objects: one record an object, its property values under their types (OBJ-1). */
export const OBJECT_RULES: DatasetRules = {
  name: OBJECTS_DATASET,
  idRule: "object",
  refuseCreate: (_id, _ops, envelope) =>
    envelope.objectAuthor === undefined || envelope.objectAuthor === envelope.author
      ? undefined
      : refusal("object.not_author"),
  refuseDelete: () => refusal("object.deleted_whole"),
  refuseOp(_doc, segments) {
    const scope = scopeOf(segments);
    if (scope !== "synced") return refusal("field.scope", { scope });
    return segments.length < 2 ? refusal("object.path") : undefined;
  },
  stamps(_doc, creating, envelope): readonly Stamp[] {
    if (!creating) return [];
    const at = { $date: new Date(envelope.timeMs).toISOString() };
    return [
      [["author"], envelope.author],
      [["createdAt"], at],
      [["modifiedAt"], at],
      [["spaceId"], envelope.spaceId],
    ];
  },
  scopeOf,
};
