import type { RecordOp } from "../../change/codec/change-body.ts";
import type { ChangeEnvelope, DatasetRules, FieldScope, Stamp } from "../../change/codec/dataset-rules.ts";
import { SvcError } from "../../protocol/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { checkAgent, checkAttachments } from "./message-rules.ts";

export const CHAT_DATASET = "chat_messages";

/** Flags of a message that are private to this device (CHAT-3). */
export const CHAT_LOCAL_FIELDS = ["unread", "unreadMention", "unreadReactions"] as const;

const LOCAL = new Set<string>(CHAT_LOCAL_FIELDS);
const DERIVED = new Set(["creator", "createdAt", "modifiedAt"]);
/** The fields with which a message may be created; only text, mentions and reactions can change later. */
const CREATED_WITH = new Set(["text", "replyToMessageId", "agent", "attachments", "mentions"]);
const MAX_TEXT_BYTES = 32 << 10;
const MAX_MENTIONS = 64;
const MAX_EMOJI_BYTES = 64;

const scopeOf = ([field]: readonly string[]): FieldScope =>
  LOCAL.has(field!) ? "local" : DERIVED.has(field!) ? "derived" : "synced";

const iso = (envelope: ChangeEnvelope): Json => ({ $date: new Date(envelope.timeMs).toISOString() });

function valueFault(field: string, value: Json | undefined): Refusal | undefined {
  switch (field) {
    case "text":
      return typeof value === "string" && Buffer.byteLength(value) <= MAX_TEXT_BYTES
        ? undefined
        : refusal("message.text");
    case "mentions":
      return Array.isArray(value) && value.length <= MAX_MENTIONS && value.every((entry) => typeof entry === "string")
        ? undefined
        : refusal("message.mentions");
    case "replyToMessageId":
      return typeof value === "string" && Buffer.byteLength(value) <= 256 ? undefined : refusal("message.reply");
    case "agent":
      return faultOf(() => checkAgent(value));
    case "attachments":
      return faultOf(() => checkAttachments(value));
    default:
      return refusal("message.field", { field });
  }
}

/** The fold drops an op for the same reason for which the check of a request refuses it. */
function faultOf(check: () => unknown): Refusal | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof SvcError && error.refusal) return error.refusal;
    throw error;
  }
}

/**
 * The rules for messages of a chat. Local and remote changes get the same verdict: only the author may change a message, and a
 * reaction's slot belongs to the account that it names.
 */
export const CHAT_RULES: DatasetRules = {
  name: CHAT_DATASET,
  idRule: "auto",
  skipHistory: true,
  scopeOf,

  refuseCreate(_id, ops) {
    const [op] = ops;
    if (ops.length !== 1 || op?.type !== "$set" || op.path !== "" || !isJsonObject(op.value))
      return refusal("message.not_whole");
    const hasText = typeof op.value["text"] === "string" && op.value["text"] !== "";
    const attachments = op.value["attachments"];
    if (!hasText && !(isJsonObject(attachments) && Object.keys(attachments).length > 0))
      return refusal("message.empty");
    for (const [field, value] of Object.entries(op.value)) {
      const fault = CREATED_WITH.has(field) ? valueFault(field, value) : refusal("message.field", { field });
      if (fault) return fault;
    }
    return undefined;
  },

  refuseDelete: (doc, envelope) =>
    doc["creator"] === envelope.author ? undefined : refusal("message.not_author", { act: "deletes" }),

  refuseOp(doc, segments, op, creating, envelope) {
    const scope = scopeOf(segments);
    if (scope !== "synced") return refusal("field.scope", { scope });
    if (creating) return undefined; // refuseCreate has judged the whole message
    const [field] = segments;
    if (field === "reactions") return refuseReaction(segments, op, envelope);
    if (field !== "text" && field !== "mentions") return refusal("message.pinned");
    if (doc["creator"] !== envelope.author) return refusal("message.not_author", { act: "edits" });
    if (segments.length !== 1 || op.type !== "$set") return refusal("message.set_whole", { field });
    if (field === "text" && op.value === "") return refusal("message.emptied");
    return valueFault(field, op.value);
  },

  /** The value of a reaction is the time of its change, whatever was sent. */
  rewriteOp: (segments, op, envelope) =>
    segments[0] === "reactions" && op.type === "$set" ? { ...op, value: iso(envelope) } : op,

  /** A message from which the last reaction was removed is equal to one that never had any. */
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

function refuseReaction(segments: readonly string[], op: RecordOp, envelope: ChangeEnvelope): Refusal | undefined {
  const [, emoji, account] = segments;
  if (segments.length !== 3 || (op.type !== "$set" && op.type !== "$unset")) return refusal("reaction.path");
  if (Buffer.byteLength(emoji!) > MAX_EMOJI_BYTES) return refusal("reaction.emoji");
  return account === envelope.author ? undefined : refusal("reaction.of_another");
}
