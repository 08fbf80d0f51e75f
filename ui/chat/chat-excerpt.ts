import type { ChatMessage } from "../api/chat-api.ts";

const EXCERPT_CHARS = 80;

/** The beginning of a message, on one line. */
export function excerpt({ text = "" }: Pick<ChatMessage, "text">): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > EXCERPT_CHARS ? `${line.slice(0, EXCERPT_CHARS)}…` : line || "an attachment";
}
