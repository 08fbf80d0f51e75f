import type { RecordOp } from "../../change/codec/change-body.ts";
import type { ChangeEnvelope, DatasetRules, FieldScope, Stamp } from "../../change/codec/dataset-rules.ts";
import { SvcError } from "../../protocol/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { checkAgent, checkAttachments } from "./message-rules.ts";

export const CHAT_DATASET = "chat_messages";

/** Flags of a message that are private to this device (CHAT-1). */
export const CHAT_LOCAL_FIELDS = ["unread", "unreadMention", "unreadReactions"] as const;

const LOCAL = new Set<string>(CHAT_LOCAL_FIELDS);
const DERIVED = new Set(["creator", "createdAt", "modifiedAt"]);
/** What a message is created with; all but text, mentions and reactions never change. */
const CREATED_WITH = new Set(["text", "replyToMessageId", "agent", "attachments", "mentions"]);
const MAX_TEXT_BYTES = 32 << 10;
const MAX_MENTIONS = 64;
const MAX_EMOJI_BYTES = 64;

const scopeOf = ([field]: readonly string[]): FieldScope =>
  LOCAL.has(field!) ? "local" : DERIVED.has(field!) ? "derived" : "synced";

const iso = (envelope: ChangeEnvelope): Json => ({ $date: new Date(envelope.timeMs).toISOString() });

function valueFault(field: string, value: Json | undefined): string | undefined {
  switch (field) {
    case "text":
      return typeof value === "string" && Buffer.byteLength(value) <= MAX_TEXT_BYTES
        ? undefined
        : "text is a string of at most 32 KiB";
    case "mentions":
      return Array.isArray(value) && value.length <= MAX_MENTIONS && value.every((entry) => typeof entry === "string")
        ? undefined
        : "mentions are at most 64 account ids";
    case "replyToMessageId":
      return typeof value === "string" && Buffer.byteLength(value) <= 256
        ? undefined
        : "replyToMessageId is a message id";
    case "agent":
      return faultOf(() => checkAgent(value));
    case "attachments":
      return faultOf(() => checkAttachments(value));
    default:
      return `a message has no field ${field}`;
  }
}

/** What a check of the request says, as a reason to drop. */
function faultOf(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof SvcError) return error.message;
    throw error;
  }
}

/**
 * Messages of a chat. The same verdict for local and remote changes: a message is its author's alone, a reaction's slot
 * belongs to the account it names.
 */
export const CHAT_RULES: DatasetRules = {
  name: CHAT_DATASET,
  idRule: "auto",
  skipHistory: true,
  scopeOf,

  refuseCreate(_id, ops) {
    const [op] = ops;
    if (ops.length !== 1 || op?.type !== "$set" || op.path !== "" || !isJsonObject(op.value))
      return "a message is created by one $set of its fields";
    const hasText = typeof op.value["text"] === "string" && op.value["text"] !== "";
    const attachments = op.value["attachments"];
    if (!hasText && !(isJsonObject(attachments) && Object.keys(attachments).length > 0))
      return "a message needs text or attachments";
    for (const [field, value] of Object.entries(op.value)) {
      const fault = CREATED_WITH.has(field) ? valueFault(field, value) : `a message has no field ${field}`;
      if (fault) return fault;
    }
    return undefined;
  },

  refuseDelete: (doc, envelope) =>
    doc["creator"] === envelope.author ? undefined : "only its author deletes a message",

  refuseOp(doc, segments, op, creating, envelope) {
    const scope = scopeOf(segments);
    if (scope !== "synced") return `the field is ${scope}`;
    if (creating) return undefined; // refuseCreate has judged the whole
    const [field] = segments;
    if (field === "reactions") return refuseReaction(segments, op, envelope);
    if (field !== "text" && field !== "mentions") return "only the text of a message changes";
    if (doc["creator"] !== envelope.author) return "only its author edits a message";
    if (segments.length !== 1 || op.type !== "$set") return `${field} is set as a whole`;
    if (field === "text" && op.value === "") return "text cannot become empty";
    return valueFault(field, op.value);
  },

  /** A reaction's value is the moment of its change, whatever was sent. */
  rewriteOp: (segments, op, envelope) =>
    segments[0] === "reactions" && op.type === "$set" ? { ...op, value: iso(envelope) } : op,

  /** A message from which the last reaction was taken is as one that never had any. */
  dropsEmptied: (segments) => segments[0] === "reactions",

  stamps(doc, creating, envelope): readonly Stamp[] {
    if (creating)
      return [
        [["creator"], envelope.author],
        [["createdAt"], iso(envelope)],
        [["modifiedAt"], iso(envelope)],
      ];
    const edited = (doc["_ver"] as JsonObject)["text"] === envelope.version;
    return edited ? [[["modifiedAt"], iso(envelope)]] : [];
  },
};

function refuseReaction(segments: readonly string[], op: RecordOp, envelope: ChangeEnvelope): string | undefined {
  const [, emoji, account] = segments;
  if (segments.length !== 3 || (op.type !== "$set" && op.type !== "$unset"))
    return "a reaction is set or unset at reactions.<emoji>.<accountId>";
  if (Buffer.byteLength(emoji!) > MAX_EMOJI_BYTES) return "an emoji has at most 64 bytes";
  return account === envelope.author ? undefined : "a reaction belongs to the account it names";
}
