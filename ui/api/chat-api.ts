import { type AnyRecord, call, spacePath, type WriteResult } from "./api-client.ts";
import type { Instant } from "./instant.ts";

export type ChatMessage = AnyRecord & {
  creator: string;
  createdAt: Instant;
  modifiedAt: Instant;
  text?: string;
  replyToMessageId?: string;
  agent?: { name: string; debugLink?: string; done: boolean };
  attachments?: { [id: string]: { type: string; link: string } };
  /** The time of each reaction, by emoji and account. */
  reactions?: { [emoji: string]: { [identity: string]: Instant } };
  unread?: boolean;
  unreadReactions?: boolean;
};

export interface MessageDraft {
  text: string;
  replyToMessageId?: string;
}

/** The message that the composer answers or edits, unless it writes a new one. */
export interface ComposerTarget {
  kind: "reply" | "edit";
  message: ChatMessage;
}

/** Requests on the chat of one object. */
export function chatApi(spaceId: string, objectId: string) {
  const path = (...segments: string[]) => spacePath(spaceId, "objects", objectId, "chat", ...segments);
  return {
    send: (draft: MessageDraft) => call<WriteResult>("POST", path("messages"), draft),
    edit: (id: string, text: string) => call<WriteResult>("PATCH", path("messages", id), { text }),
    remove: (id: string) => call<WriteResult>("DELETE", path("messages", id)),
    react: (id: string, emoji: string) => call<WriteResult>("POST", path("messages", id, "reactions", emoji)),
    readUpTo: (id: string) => call<void>("POST", path("messages", id, "read")),
    readAll: () => call<void>("POST", path("read-all")),
    readReactions: (id: string) => call<void>("POST", path("messages", id, "reactions-read")),
  };
}

export type ChatApi = ReturnType<typeof chatApi>;
