/** A chat, newest message at the bottom, updated live. */
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { type AnyRecord, spacePath } from "../api/api-client.ts";
import { type ChatApi, type ChatMessage, type ComposerTarget, chatApi } from "../api/chat-api.ts";
import { chatCounters } from "../api/object-row.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { LiveLine } from "../parts/live-line.tsx";
import { useLiveRecords } from "../stream/live-records.ts";
import { ChatComposer } from "./chat-composer.tsx";
import { ChatMessageItem } from "./chat-message.tsx";

const PAGE = 50;
/** Messages of one author that follow each other within this time appear under one name. */
const GROUP_MS = 5 * 60_000;

export interface ChatViewProps {
  spaceId: string;
  objectId: string;
  /** The chat's own row, which holds its counters. */
  row: AnyRecord;
}

export function ChatView({ spaceId, objectId, row }: ChatViewProps) {
  const api = chatApi(spaceId, objectId);
  const limit = useSignal(PAGE);
  const target = useSignal<ComposerTarget | undefined>(undefined);
  const live = useLiveRecords(spacePath(spaceId, "query"), {
    objectId,
    dataset: "chat_messages",
    sort: ["-_ver.id"],
    limit: limit.value,
  });
  const messages = useHeld(live.records.value as readonly ChatMessage[], live.state.value === "connecting");
  const total = live.total.value ?? 0;
  return (
    <section class="chat card" aria-label="Chat">
      <div class="chat-head">
        <LiveLine state={live.state.value} />
        <span class="grow" />
        <Unread row={row} api={api} />
      </div>
      <ErrorNote error={live.error.value} />
      <div class="chat-scroll">
        <ol class="chat-list" aria-live="polite">
          {total > messages.length && (
            <li class="chat-older">
              <button
                type="button"
                class="plain"
                onClick={() => {
                  limit.value += PAGE;
                }}
              >
                Older messages
              </button>
            </li>
          )}
          {messages.toReversed().map((message, index, all) => (
            <ChatMessageItem
              key={message.id}
              message={message}
              previous={all[index - 1]}
              continues={continuesGroup(message, all[index - 1])}
              repliedTo={all.find(({ id }) => id === message.replyToMessageId)}
              api={api}
              spaceId={spaceId}
              onTarget={(next) => {
                target.value = next;
              }}
            />
          ))}
          {messages.length === 0 && live.state.value === "live" && <li class="empty">Nothing said yet.</li>}
        </ol>
      </div>
      <ChatComposer key={targetKey(target.value)} objectId={objectId} api={api} target={target} />
    </section>
  );
}

function Unread({ row, api }: { row: AnyRecord; api: ChatApi }) {
  const { busy, error, run } = useFormAction();
  const { unread, mentions, reactions } = chatCounters(row);
  if (unread + reactions === 0) return <ErrorNote error={error} />;
  return (
    <>
      {unread > 0 && <span class="badge">{unread} unread</span>}
      {mentions > 0 && <span class="badge">{mentions} for you</span>}
      {reactions > 0 && <span class="badge">{reactions} reacted</span>}
      <button type="button" class="plain" disabled={busy} onClick={() => run(api.readAll)}>
        Mark all read
      </button>
      <ErrorNote error={error} />
    </>
  );
}

function continuesGroup(message: ChatMessage, previous: ChatMessage | undefined): boolean {
  return (
    previous !== undefined &&
    previous.creator === message.creator &&
    previous.agent?.name === message.agent?.name &&
    message.replyToMessageId === undefined &&
    Date.parse(message.createdAt.$date) - Date.parse(previous.createdAt.$date) < GROUP_MS
  );
}

/** A composer for another target starts empty. */
function targetKey(target: ComposerTarget | undefined): string {
  return target ? `${target.kind} ${target.message.id}` : "new";
}

/** The old value stays until the next window has arrived. */
function useHeld<Value>(value: Value, hold: boolean): Value {
  const held = useRef(value);
  if (!hold) held.current = value;
  return held.current;
}
