import { refusedAs, refusedPart, type SvcError, svcError } from "../../protocol/errors.ts";
import { isJsonObject, type JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";

/** What a client sends to make a message; `agent` and `attachments` are checked here, down to the leaves. */
export interface MessageInput {
  readonly text?: string;
  readonly replyToMessageId?: string;
  readonly agent?: unknown;
  readonly attachments?: unknown;
}

export interface AgentGroup {
  readonly name: string;
  readonly debugLink?: string;
  readonly done: boolean;
}

export interface Attachment {
  /** Open: `link`, `image`, … */
  readonly type: string;
  readonly link: string;
}

/** A checked message; absent parts are left out. */
export interface NewMessage {
  readonly text?: string;
  readonly replyToMessageId?: string;
  readonly agent?: AgentGroup;
  readonly attachments?: Readonly<Record<string, Attachment>>;
}

const MAX_REPLY_BYTES = 256;
const MAX_AGENT_NAME_BYTES = 256;
const MAX_LINK_BYTES = 2 << 10;
const MAX_ATTACHMENT_TYPE_BYTES = 64;
const MAX_ATTACHMENTS = 32;
const MAX_EMOJI_BYTES = 64;
export const MAX_MENTIONS = 64;
const ATTACHMENT_ID = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * Checks a new message (CHAT-1).
 * Errors: chat.text_required; chat.agent_invalid {field, reason}; request.invalid_field {field, reason, limitBytes?}.
 */
export function checkNewMessage(input: MessageInput): NewMessage {
  const attachments = input.attachments === undefined ? {} : checkAttachments(input.attachments);
  const hasAttachments = Object.keys(attachments).length > 0;
  const text = input.text ?? "";
  if (text === "" && !hasAttachments) throw svcError("chat.text_required");
  checkText(text);
  const { replyToMessageId = "" } = input;
  refuseLonger("replyToMessageId", replyToMessageId, MAX_REPLY_BYTES);
  return {
    ...(text === "" ? {} : { text }),
    ...(replyToMessageId === "" ? {} : { replyToMessageId }),
    ...(input.agent === undefined ? {} : { agent: checkAgent(input.agent) }),
    ...(hasAttachments ? { attachments } : {}),
  };
}

/** Checks the new text of a message. Errors: chat.text_required; request.invalid_field {field, reason, limitBytes}. */
export function checkEditedText(text: string): string {
  if (text === "") throw refusedAs("chat.text_required", undefined, refusal("message.no_text"));
  checkText(text);
  return text;
}

/**
 * Checks a reaction, which becomes one segment of the path `reactions.<emoji>.<accountId>`.
 * Errors: request.invalid_field {field, reason, limitBytes?}.
 */
export function checkEmoji(emoji: string): string {
  if (emoji === "") throw refused("emoji", refusal("value.empty"));
  refuseLonger("emoji", emoji, MAX_EMOJI_BYTES);
  if (emoji.includes(".") || emoji === "*" || emoji === "__proto__") throw refused("emoji", refusal("emoji.name"));
  return emoji;
}

/** `svc://m/<spaceId>/<identity>`, as a link or bare. */
const MENTION = /svc:\/\/m\/[A-Za-z0-9._-]+\/([A-Za-z0-9]{1,128})(?![A-Za-z0-9])/g;

/**
 * Returns the accounts that a message mentions: those linked in its text, in order and once each, and the author of the message
 * that it answers; at most 64, including that author.
 */
export function deriveMentions(text: string, repliedTo?: string): string[] {
  const mentioned = new Set<string>();
  const room = repliedTo === undefined ? MAX_MENTIONS : MAX_MENTIONS - 1;
  for (const [, identity] of text.matchAll(MENTION)) {
    if (identity === repliedTo) continue;
    if (mentioned.size === room) break;
    mentioned.add(identity!);
  }
  if (repliedTo !== undefined) mentioned.add(repliedTo);
  return [...mentioned];
}

function checkText(text: string): void {
  refuseLonger("text", text, LIMITS.chatTextBytes);
}

/** Checks the agent group of a message. Errors: chat.agent_invalid {field, reason}. */
export function checkAgent(agent: unknown): AgentGroup {
  const invalid = (field: string, why: Refusal) =>
    refusedAs("chat.agent_invalid", { field }, refusal("message.agent", { field, why }), { reason: why });
  if (!isJsonObject(agent)) throw invalid("agent", refusal("agent.object"));
  const known = new Set(["name", "debugLink", "done"]);
  for (const key of Object.keys(agent)) if (!known.has(key)) throw invalid(`agent.${key}`, refusal("agent.field"));
  const { name, debugLink, done } = agent as { name?: unknown; debugLink?: unknown; done?: unknown };
  if (!isTextUpTo(name, MAX_AGENT_NAME_BYTES)) {
    throw invalid("agent.name", refusal("value.text_bounds", { limitBytes: MAX_AGENT_NAME_BYTES }));
  }
  if (debugLink !== undefined && !isTextUpTo(debugLink, MAX_LINK_BYTES)) {
    throw invalid("agent.debugLink", refusal("value.text_bounds", { limitBytes: MAX_LINK_BYTES }));
  }
  if (typeof done !== "boolean") throw invalid("agent.done", refusal("value.boolean"));
  return { name, ...(debugLink === undefined ? {} : { debugLink }), done };
}

/** Checks the attachments of a message, by id. Errors: request.invalid_field {field, reason}. */
export function checkAttachments(attachments: unknown): Record<string, Attachment> {
  if (!isJsonObject(attachments)) throw refused("attachments", refusal("attachments.object"));
  const entries = Object.entries(attachments);
  if (entries.length > MAX_ATTACHMENTS)
    throw refused("attachments", refusal("attachments.count", { limit: MAX_ATTACHMENTS }));
  const checked: Record<string, Attachment> = {};
  for (const [id, attachment] of entries) {
    if (!ATTACHMENT_ID.test(id)) throw refused("attachments", refusal("attachments.id"));
    if (id === "__proto__") throw refused("attachments", refusal("attachments.proto"));
    checked[id] = checkAttachment(`attachments.${id}`, attachment);
  }
  return checked;
}

function checkAttachment(field: string, attachment: unknown): Attachment {
  if (!isJsonObject(attachment)) throw refused(field, refusal("attachment.object"));
  const { type, link, ...more } = attachment as JsonObject;
  const [unknown] = Object.keys(more);
  if (unknown !== undefined) throw refused(`${field}.${unknown}`, refusal("attachment.field"));
  if (!isTextUpTo(type, MAX_ATTACHMENT_TYPE_BYTES)) {
    throw refused(`${field}.type`, refusal("value.text_bounds", { limitBytes: MAX_ATTACHMENT_TYPE_BYTES }));
  }
  if (!isTextUpTo(link, MAX_LINK_BYTES))
    throw refused(`${field}.link`, refusal("value.text_bounds", { limitBytes: MAX_LINK_BYTES }));
  return { type, link };
}

function isTextUpTo(value: unknown, limitBytes: number): value is string {
  return typeof value === "string" && value !== "" && Buffer.byteLength(value) <= limitBytes;
}

function refuseLonger(field: string, value: string, limitBytes: number): void {
  if (Buffer.byteLength(value) <= limitBytes) return;
  throw refusedPart("request.invalid_field", { field, limitBytes }, refusal("value.too_long", { limitBytes }), "long");
}

const refused = (field: string, why: Refusal): SvcError =>
  refusedAs("request.invalid_field", { field }, refusal("message.field_refused", { field, why }), { reason: why });
