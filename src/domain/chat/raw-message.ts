import type { AccountId } from "../../base/ids.ts";
import type { RecordChange, RecordOp } from "../../change/codec/change-body.ts";
import { refusedPart } from "../../protocol/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { CHAT_DATASET, CHAT_LOCAL_FIELDS } from "./chat-rules.ts";
import { deriveMentions } from "./message-rules.ts";

/** `POST {S}/modify` on messages: what the chat endpoints do in addition to writing happens here too. */

/** Refuses what a caller may not send: mentions are derived from the text. Throws dataset.validation. */
export function checkRawMessageOp(_type: RecordOp["type"], path: string): void {
  if (path.split(".")[0] !== "mentions") return;
  const why = refusal("message.mentions_derived");
  const part = { dataset: CHAT_DATASET, path };
  throw refusedPart("dataset.validation", part, why, "field", refusal("message.raw"));
}

/** Returns why a `scope: local` op on a message is refused: its flags are true or absent. */
export function rawFlagFault({ type, path, value }: RecordOp): Refusal | undefined {
  if (!CHAT_LOCAL_FIELDS.some((field) => field === path)) return refusal("field.not_local");
  return type === "$unset" || (type === "$set" && value === true) ? undefined : refusal("message.flag");
}

/** Sets the mentions of every message whose text a record sets. It leaves alone what the fold will refuse. */
export function completeRawMessages(
  records: RecordChange[],
  author: AccountId,
  stored: (messageId: string) => JsonObject | undefined,
): RecordChange[] {
  const creatorOf = (messageId: Json | undefined): string | undefined => {
    const creator = typeof messageId === "string" && messageId !== "" ? stored(messageId)?.["creator"] : undefined;
    return typeof creator === "string" ? creator : undefined;
  };
  /** Messages to which an earlier op of the request gave mentions. */
  const mentioning = new Set<string>();
  return records.map((record) => {
    const message = record.id === "" ? undefined : stored(record.id);
    if (message ? message["creator"] !== author : record.id !== "") return record;
    const complete = (op: RecordOp): RecordOp => {
      const fields = fieldsSetBy(op);
      if (!fields || (message && !Object.hasOwn(fields, "text"))) return op;
      const text = fields["text"] ?? "";
      if (typeof text !== "string" || Buffer.byteLength(text) > LIMITS.chatTextBytes) return op;
      if (message && text === "") return op;
      const mentions = deriveMentions(text, creatorOf((message ?? fields)["replyToMessageId"]));
      if (mentions.length === 0 && message?.["mentions"] === undefined && !mentioning.has(record.id)) return op;
      if (message) mentioning.add(record.id);
      return { type: "$set", path: "", value: { ...fields, mentions } };
    };
    return { ...record, ops: record.ops.map(complete) };
  });
}

/** The fields that an op sets at the root of a message. */
function fieldsSetBy({ type, path, value }: RecordOp): JsonObject | undefined {
  if (type !== "$set") return undefined;
  if (path === "text") return { text: value ?? null };
  return path === "" && isJsonObject(value) ? value : undefined;
}
