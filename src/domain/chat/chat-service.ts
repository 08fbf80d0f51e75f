import type { AccountId, ObjectId } from "../../base/ids.ts";
import type { RecordChange } from "../../change/codec/change-body.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { ChangeEngine, WriteTx } from "../../change/space-engine.ts";
import { svcError } from "../../protocol/errors.ts";
import { isJsonObject, type JsonObject } from "../../protocol/json.ts";
import { toWriteResult, type WriteResult } from "../record/port.ts";
import { CHAT_DATASET, CHAT_RULES } from "./chat-rules.ts";
import { checkEditedText, checkEmoji, checkNewMessage, deriveMentions, type MessageInput } from "./message-rules.ts";
import type { Unread } from "./unread.ts";

interface ChatServiceDeps {
  engine: ChangeEngine;
  accountId: AccountId;
  unread: Unread;
  requireWriter(): void;
  /** Gives an object the type of chats if it lacks it. */
  attachType(tx: WriteTx, object: ObjectEntry, typeId: string): void;
}

/** Messages of a chat object, as their author and their readers handle them. */
export type ChatService = ReturnType<typeof createChatService>;

export function createChatService(deps: ChatServiceDeps) {
  const { engine, accountId, unread } = deps;

  const chatOf = (object: ObjectEntry | undefined, objectId: string): ObjectEntry => {
    if (!object || object.deleted) throw svcError("object.not_found", { objectId });
    return object;
  };
  const messageIn = (tx: Pick<WriteTx, "record">, chat: ObjectEntry, messageId: string): JsonObject => {
    const message = tx.record(chat, CHAT_DATASET, messageId);
    if (!message) throw svcError("chat.not_found", { messageId });
    return message;
  };
  const requireAuthor = (message: JsonObject): void => {
    if (message["creator"] !== accountId) throw svcError("chat.not_author", { messageId: message["id"] });
  };
  const write = (tx: WriteTx, chat: ObjectEntry, record: RecordChange): WriteResult =>
    toWriteResult(tx.append(chat, { dataset: CHAT_DATASET, records: [record] }, CHAT_RULES));
  const authorOf = (tx: WriteTx, chat: ObjectEntry, messageId: string | undefined): string | undefined => {
    const replied = messageId ? tx.record(chat, CHAT_DATASET, messageId) : undefined;
    return typeof replied?.["creator"] === "string" ? replied["creator"] : undefined;
  };

  return {
    /** Sends a message. Errors: chat.text_required, chat.agent_invalid, request.invalid_field, object.not_found. */
    send(objectId: string, input: MessageInput): Promise<WriteResult> {
      deps.requireWriter();
      const message = checkNewMessage(input);
      return engine.write((tx) => {
        const chat = chatOf(tx.object(objectId), objectId);
        deps.attachType(tx, chat, "chat");
        const mentions = deriveMentions(message.text ?? "", authorOf(tx, chat, message.replyToMessageId));
        const value = { ...message, ...(mentions.length > 0 ? { mentions } : {}) } as unknown as JsonObject;
        return write(tx, chat, { id: "", upsert: true, ops: [{ type: "$set", path: "", value }] });
      });
    },

    /** Replaces the text of one's own message; its mentions are derived anew. */
    edit(objectId: string, messageId: string, text: string): Promise<WriteResult> {
      deps.requireWriter();
      const checked = checkEditedText(text);
      return engine.write((tx) => {
        const chat = chatOf(tx.object(objectId), objectId);
        const message = messageIn(tx, chat, messageId);
        requireAuthor(message);
        const mentions = deriveMentions(checked, authorOf(tx, chat, message["replyToMessageId"] as string | undefined));
        const known = Array.isArray(message["mentions"]) ? message["mentions"] : [];
        const value: JsonObject = { text: checked, ...(Bun.deepEquals(mentions, known) ? {} : { mentions }) };
        return write(tx, chat, { id: messageId, ops: [{ type: "$set", path: "", value }] });
      });
    },

    delete(objectId: string, messageId: string): Promise<WriteResult> {
      deps.requireWriter();
      return engine.write((tx) => {
        const chat = chatOf(tx.object(objectId), objectId);
        requireAuthor(messageIn(tx, chat, messageId));
        return write(tx, chat, { id: messageId, delete: true, ops: [] });
      });
    },

    /** Adds one's reaction to a message, or removes it if it is there. */
    react(objectId: string, messageId: string, emoji: string): Promise<WriteResult> {
      deps.requireWriter();
      const checked = checkEmoji(emoji);
      return engine.write((tx) => {
        const chat = chatOf(tx.object(objectId), objectId);
        const { reactions } = messageIn(tx, chat, messageId);
        const slots = isJsonObject(reactions) && Object.hasOwn(reactions, checked) ? reactions[checked] : undefined;
        const mine = isJsonObject(slots) && Object.hasOwn(slots, accountId);
        const path = `reactions.${checked}.${accountId}`;
        return write(tx, chat, {
          id: messageId,
          ops: [mine ? { type: "$unset", path } : { type: "$set", path, value: true }],
        });
      });
    },

    async readAll(objectId: string): Promise<void> {
      await unread.readAll(chatOf(engine.object(objectId), objectId).idText);
    },

    /** Marks this message and everything before it as read, on all devices of the account. */
    async read(objectId: string, messageId: string): Promise<void> {
      const chat = chatOf(engine.object(objectId), objectId);
      await unread.readUpTo(chat.idText, messageIn(engine, chat, messageId));
    },

    /** Removes the mark of unread reactions from a message; an unknown message has none. */
    async readReactions(objectId: string, messageId: string): Promise<void> {
      const chat = chatOf(engine.object(objectId), objectId);
      const message = engine.record(chat, CHAT_DATASET, messageId);
      if (message) await unread.readReactions(chat.idText as ObjectId, message);
    },
  };
}
