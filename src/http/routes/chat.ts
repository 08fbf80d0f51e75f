import { Type } from "@sinclair/typebox";
import { WriteReply } from "../../protocol/record.ts";
import { strict } from "../../protocol/schema.ts";
import { type Route, route } from "../route.ts";

const MESSAGES = "/v1/spaces/:spaceId/objects/:objectId/chat/messages";

const MessageBody = strict({
  text: Type.Optional(Type.String({ description: "Markdown, at most 32 KiB" })),
  replyToMessageId: Type.Optional(Type.String()),
  agent: Type.Optional(
    Type.Unknown({
      description: "`{name, debugLink?, done}`: who speaks for the account, and whether it has finished",
    }),
  ),
  attachments: Type.Optional(
    Type.Object({}, { additionalProperties: true, description: "By id: `{type, link}`; at most 32" }),
  ),
});

const EditBody = strict({ text: Type.String() });

/** Chat of an object. Messages are read with a query on the dataset `chat_messages`, newest first by `-_ver.id`. */
export const chatRoutes: Route[] = [
  route({
    method: "POST",
    path: MESSAGES,
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
    tag: "Chat",
    summary: "Edit one's own message",
    body: EditBody,
    example: { text: "Dinner at eight?" },
    responses: { 200: { description: "What was written", schema: WriteReply } },
    errors: ["object.not_found", "chat.not_found", "chat.not_author", "chat.text_required", "space.read_only"],
    handler: async ({ engine, params, body }) =>
      (await engine.space(params.spaceId)).chat.edit(params.objectId, params.msgId, body.text),
  }),
  route({
    method: "DELETE",
    path: `${MESSAGES}/:msgId`,
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
    tag: "Chat",
    summary: "Put a reaction on a message, or take it back",
    responses: { 200: { description: "What was written", schema: WriteReply } },
    errors: ["object.not_found", "chat.not_found", "request.invalid_field", "space.read_only"],
    handler: async ({ engine, params }) =>
      (await engine.space(params.spaceId)).chat.react(params.objectId, params.msgId, params.emoji),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/objects/:objectId/chat/read-all",
    tag: "Chat",
    summary: "Mark every message as read",
    responses: { 204: { description: "Read, on all devices of the account" } },
    errors: ["object.not_found"],
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).chat.readAll(params.objectId),
  }),
  route({
    method: "POST",
    path: `${MESSAGES}/:msgId/read`,
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
    tag: "Chat",
    summary: "Mark the reactions on a message as read",
    responses: { 204: { description: "Read" } },
    errors: ["object.not_found"],
    handler: async ({ engine, params }) =>
      (await engine.space(params.spaceId)).chat.readReactions(params.objectId, params.msgId),
  }),
];
