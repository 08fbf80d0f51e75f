import { Type } from "@sinclair/typebox";
import { WriteReply } from "../../protocol/record.ts";
import { describedAs, named, strict } from "../../protocol/schema.ts";
import { type Route, route } from "../route.ts";

const MESSAGES = "/v1/spaces/:spaceId/objects/:objectId/chat/messages";

const AgentGroup = named(
  "AgentGroup",
  strict({
    name: Type.String({ minLength: 1 }),
    debugLink: Type.Optional(Type.String({ description: "Where its work can be looked into" })),
    done: Type.Boolean({ description: "It has said its last word" }),
  }),
);
const Attachments = Type.Record(Type.String(), strict({ type: Type.String(), link: Type.String() }));

const MessageBody = named(
  "ChatMessageBody",
  strict({
    text: Type.Optional(Type.String({ description: "Markdown, at most 32 KiB" })),
    replyToMessageId: Type.Optional(Type.String()),
    agent: Type.Optional(describedAs(AgentGroup, Type.Unknown({ description: "Who speaks for the account" }))),
    attachments: Type.Optional(
      describedAs(Attachments, Type.Object({}, { additionalProperties: true, description: "By id; at most 32" })),
    ),
  }),
);

const EditBody = named("ChatEditBody", strict({ text: Type.String() }));

/** Chat of an object. Messages are read with a query on the dataset `chat_messages`, newest first by `-_ver.id`. */
export const chatRoutes: Route[] = [
  route({
    method: "POST",
    path: MESSAGES,
    id: "sendChatMessage",
    tag: "Chat",
    summary: "Send a message",
    body: MessageBody,
    example: { text: "Dinner at seven?" },
    responses: { 201: { description: "The message's id is recordIds[0]", schema: WriteReply } },
    errors: ["object.not_found", "chat.text_required", "chat.agent_invalid", "dataset.validation", "space.read_only"],
    handler: async ({ engine, params, body }) => (await engine.space(params.spaceId)).chat.send(params.objectId, body),
  }),
  route({
    method: "PATCH",
    path: `${MESSAGES}/:msgId`,
    id: "editChatMessage",
    tag: "Chat",
    summary: "Edit one's own message",
    body: EditBody,
    example: { text: "Dinner at eight?" },
    responses: { 200: { description: "What was written", schema: WriteReply } },
    errors: [
      "object.not_found",
      "chat.not_found",
      "chat.not_author",
      "chat.text_required",
      "dataset.validation",
      "space.read_only",
    ],
    handler: async ({ engine, params, body }) =>
      (await engine.space(params.spaceId)).chat.edit(params.objectId, params.msgId, body.text),
  }),
  route({
    method: "DELETE",
    path: `${MESSAGES}/:msgId`,
    id: "deleteChatMessage",
    tag: "Chat",
    summary: "Delete one's own message",
    responses: { 200: { description: "What was written", schema: WriteReply } },
    errors: ["object.not_found", "chat.not_found", "chat.not_author", "space.read_only"],
    handler: async ({ engine, params }) =>
      (await engine.space(params.spaceId)).chat.delete(params.objectId, params.msgId),
  }),
  route({
    method: "POST",
    path: `${MESSAGES}/:msgId/reactions/:emoji`,
    id: "toggleChatReaction",
    tag: "Chat",
    summary: "Put a reaction on a message, or take it back",
    responses: { 200: { description: "What was written", schema: WriteReply } },
    errors: ["object.not_found", "chat.not_found", "request.invalid_field", "dataset.validation", "space.read_only"],
    handler: async ({ engine, params }) =>
      (await engine.space(params.spaceId)).chat.react(params.objectId, params.msgId, params.emoji),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/objects/:objectId/chat/read-all",
    id: "markChatRead",
    tag: "Chat",
    summary: "Mark every message as read",
    responses: { 204: { description: "Read, on all devices of the account" } },
    errors: ["object.not_found"],
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).chat.readAll(params.objectId),
  }),
  route({
    method: "POST",
    path: `${MESSAGES}/:msgId/read`,
    id: "markChatMessageRead",
    tag: "Chat",
    summary: "Mark a message and all before it as read",
    responses: { 204: { description: "Read" } },
    errors: ["object.not_found", "chat.not_found"],
    handler: async ({ engine, params }) =>
      (await engine.space(params.spaceId)).chat.read(params.objectId, params.msgId),
  }),
  route({
    method: "POST",
    path: `${MESSAGES}/:msgId/reactions-read`,
    id: "markChatReactionsRead",
    tag: "Chat",
    summary: "Mark the reactions on a message as read",
    description: "Messages that the authors of the reactions knew when they reacted are read, too.",
    responses: { 204: { description: "Read" } },
    errors: ["object.not_found"],
    handler: async ({ engine, params }) =>
      (await engine.space(params.spaceId)).chat.readReactions(params.objectId, params.msgId),
  }),
];
