import { type SvcError, svcError } from "../../protocol/errors.ts";
import { isJsonObject, type JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";

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

/** A message that may be written; absent parts are left out. */
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
  if (text === "")
    throw svcError("chat.text_required", undefined, "An edited message needs text; delete it to take it back");
  checkText(text);
  return text;
}

/**
 * Checks a reaction, which becomes one segment of the path `reactions.<emoji>.<accountId>`.
 * Errors: request.invalid_field {field, reason, limitBytes?}.
 */
export function checkEmoji(emoji: string): string {
  if (emoji === "") throw refusal("emoji", "must not be empty");
  refuseLonger("emoji", emoji, MAX_EMOJI_BYTES);
  if (emoji.includes(".") || emoji === "*" || emoji === "__proto__")
    throw refusal("emoji", "is no emoji: it has a dot, or is a name of the data language");
  return emoji;
}

/** `svc://m/<spaceId>/<identity>`, as a link or bare. */
const MENTION = /svc:\/\/m\/[A-Za-z0-9._-]+\/([A-Za-z0-9]{1,128})(?![A-Za-z0-9])/g;

/**
 * The accounts a message mentions: those linked in its text, in order and once each, and the author of the message it
 * answers; at most 64, of which that author is one.
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
  const invalid = (field: string, reason: string) =>
    svcError("chat.agent_invalid", { field, reason }, `The agent group is malformed: ${field} ${reason}`);
  if (!isJsonObject(agent)) throw invalid("agent", "must be an object with name and done");
  const known = new Set(["name", "debugLink", "done"]);
  for (const key of Object.keys(agent)) if (!known.has(key)) throw invalid(`agent.${key}`, "is not a field of it");
  const { name, debugLink, done } = agent as { name?: unknown; debugLink?: unknown; done?: unknown };
  if (!isTextUpTo(name, MAX_AGENT_NAME_BYTES)) {
    throw invalid("agent.name", `must be a string of 1 to ${MAX_AGENT_NAME_BYTES} bytes`);
  }
  if (debugLink !== undefined && !isTextUpTo(debugLink, MAX_LINK_BYTES)) {
    throw invalid("agent.debugLink", `must be a string of 1 to ${MAX_LINK_BYTES} bytes`);
  }
  if (typeof done !== "boolean") throw invalid("agent.done", "must be true or false");
  return { name, ...(debugLink === undefined ? {} : { debugLink }), done };
}

/** Checks the attachments of a message, by id. Errors: request.invalid_field {field, reason}. */
export function checkAttachments(attachments: unknown): Record<string, Attachment> {
  if (!isJsonObject(attachments)) throw refusal("attachments", "must be an object of attachments by id");
  const entries = Object.entries(attachments);
  if (entries.length > MAX_ATTACHMENTS) throw refusal("attachments", `at most ${MAX_ATTACHMENTS} to a message`);
  const checked: Record<string, Attachment> = {};
  for (const [id, attachment] of entries) {
    if (!ATTACHMENT_ID.test(id)) throw refusal("attachments", "an id is 1 to 64 of A-Z, a-z, 0-9, _ and -");
    if (id === "__proto__") throw refusal("attachments", "__proto__ is no id");
    checked[id] = checkAttachment(`attachments.${id}`, attachment);
  }
  return checked;
}

function checkAttachment(field: string, attachment: unknown): Attachment {
  if (!isJsonObject(attachment)) throw refusal(field, "must be an object with type and link");
  const { type, link, ...more } = attachment as JsonObject;
  const [unknown] = Object.keys(more);
  if (unknown !== undefined) throw refusal(`${field}.${unknown}`, "is not a field of an attachment");
  if (!isTextUpTo(type, MAX_ATTACHMENT_TYPE_BYTES)) {
    throw refusal(`${field}.type`, `must be a string of 1 to ${MAX_ATTACHMENT_TYPE_BYTES} bytes`);
  }
  if (!isTextUpTo(link, MAX_LINK_BYTES))
    throw refusal(`${field}.link`, `must be a string of 1 to ${MAX_LINK_BYTES} bytes`);
  return { type, link };
}

function isTextUpTo(value: unknown, limitBytes: number): value is string {
  return typeof value === "string" && value !== "" && Buffer.byteLength(value) <= limitBytes;
}

function refuseLonger(field: string, value: string, limitBytes: number): void {
  if (Buffer.byteLength(value) <= limitBytes) return;
  const reason = `at most ${limitBytes} bytes`;
  throw svcError("request.invalid_field", { field, reason, limitBytes }, `The field ${field} is too long: ${reason}`);
}

function refusal(field: string, reason: string): SvcError {
  return svcError("request.invalid_field", { field, reason }, `The field ${field} is refused: ${reason}`);
}
