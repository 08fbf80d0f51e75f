/** One message of a chat, with the actions on it. */
import type { ChatApi, ChatMessage, ComposerTarget } from "../api/chat-api.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { MarkdownView } from "../parts/markdown-view.tsx";
import { isMe, personName } from "../parts/people.ts";
import { excerpt } from "./chat-excerpt.ts";

const QUICK_REACTIONS = ["👍", "❤️", "😄", "🎉", "👀"];

export interface ChatMessageItemProps {
  message: ChatMessage;
  previous: ChatMessage | undefined;
  /** It appears under the same name as the message before it. */
  continues: boolean;
  /** The message that it answers, if that one is shown. */
  repliedTo: ChatMessage | undefined;
  api: ChatApi;
  spaceId: string;
  onTarget: (target: ComposerTarget) => void;
}

export function ChatMessageItem(props: ChatMessageItemProps) {
  const { message, previous, continues, repliedTo, api, spaceId, onTarget } = props;
  const { busy, error, run } = useFormAction();
  const own = isMe(message.creator);
  const day = dayOf(message);
  return (
    <>
      {(!previous || dayOf(previous) !== day) && <li class="chat-day">{day}</li>}
      <li class={`chat-message${own ? " own" : ""}${continues ? " continues" : ""}`}>
        {!continues && <MessageHead message={message} />}
        {message.replyToMessageId !== undefined && (
          <p class="chat-quote">
            {repliedTo ? `${personName(repliedTo.creator)}: ${excerpt(repliedTo)}` : "an earlier message"}
          </p>
        )}
        {message.text !== undefined && <MarkdownView text={message.text} spaceId={spaceId} />}
        <Attachments message={message} />
        <Reactions message={message} busy={busy} onReact={(emoji) => run(() => done(api.react(message.id, emoji)))} />
        <ErrorNote error={error} />
        <div class="chat-actions">
          {QUICK_REACTIONS.map((emoji) => (
            <button
              key={emoji}
              type="button"
              class="plain"
              aria-label={`React with ${emoji}`}
              disabled={busy}
              onClick={() => run(() => done(api.react(message.id, emoji)))}
            >
              {emoji}
            </button>
          ))}
          <button type="button" class="plain" onClick={() => onTarget({ kind: "reply", message })}>
            Reply
          </button>
          {message.unread && (
            <button type="button" class="plain" disabled={busy} onClick={() => run(() => api.readUpTo(message.id))}>
              Read up to here
            </button>
          )}
          {message.unreadReactions && (
            <button
              type="button"
              class="plain"
              disabled={busy}
              onClick={() => run(() => api.readReactions(message.id))}
            >
              Seen
            </button>
          )}
          {own && (
            <>
              <button type="button" class="plain" onClick={() => onTarget({ kind: "edit", message })}>
                Edit
              </button>
              <ConfirmButton
                label="Delete"
                question="Delete for everybody"
                disabled={busy}
                onConfirm={() => run(() => done(api.remove(message.id)))}
              />
            </>
          )}
        </div>
      </li>
    </>
  );
}

function MessageHead({ message }: { message: ChatMessage }) {
  const edited = message.modifiedAt.$date !== message.createdAt.$date;
  return (
    <p class="chat-who">
      <strong>{message.agent ? message.agent.name : personName(message.creator)}</strong>
      {message.agent && <span class="tag">{message.agent.done ? "agent" : "agent, writing…"}</span>}
      <time dateTime={message.createdAt.$date}>{timeOf(message)}</time>
      {edited && <span>edited</span>}
      {message.unread && <span class="badge">new</span>}
    </p>
  );
}

function Attachments({ message }: { message: ChatMessage }) {
  const attachments = Object.entries(message.attachments ?? {});
  if (attachments.length === 0) return null;
  return (
    <p class="tags">
      {attachments.map(([id, { type, link }]) => (
        <span key={id} class="tag">
          {type}: {link}
        </span>
      ))}
    </p>
  );
}

function Reactions(props: { message: ChatMessage; busy: boolean; onReact: (emoji: string) => void }) {
  const reactions = Object.entries(props.message.reactions ?? {}).filter(([, whom]) => Object.keys(whom).length > 0);
  if (reactions.length === 0) return null;
  return (
    <p class="chat-reactions">
      {reactions.map(([emoji, whom]) => {
        const people = Object.keys(whom);
        return (
          <button
            key={emoji}
            type="button"
            class="reaction"
            title={people.map(personName).join(", ")}
            aria-pressed={people.some(isMe)}
            disabled={props.busy}
            onClick={() => props.onReact(emoji)}
          >
            {emoji} {people.length}
          </button>
        );
      })}
    </p>
  );
}

function dayOf({ createdAt }: ChatMessage): string {
  return new Date(createdAt.$date).toLocaleDateString(undefined, { weekday: "long", day: "numeric", month: "long" });
}

function timeOf({ createdAt }: ChatMessage): string {
  return new Date(createdAt.$date).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
}

async function done(write: Promise<unknown>): Promise<void> {
  await write;
}
