/** The field for writing a message: a new one, an answer, or an edit of one's own. */
import type { Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { ChatApi, ComposerTarget } from "../api/chat-api.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { personName } from "../parts/people.ts";
import { excerpt } from "./chat-excerpt.ts";
import { useKeptText } from "./kept-text.ts";

export interface ChatComposerProps {
  objectId: string;
  api: ChatApi;
  target: Signal<ComposerTarget | undefined>;
}

export function ChatComposer({ objectId, api, target }: ChatComposerProps) {
  const { busy, error, run } = useFormAction();
  const goal = target.value;
  const edited = goal?.kind === "edit" ? goal.message : undefined;
  // Text already typed stays when the message becomes an answer.
  const { text, write } = useKeptText(edited ? `${objectId} ${edited.id}` : objectId, edited?.text ?? "");
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (goal) field.current?.focus();
  }, [goal]);
  const submit = () =>
    run(async () => {
      const words = text.value.trim();
      if (words === "") return;
      if (goal?.kind === "edit") await api.edit(goal.message.id, words);
      else await api.send({ text: words, ...(goal ? { replyToMessageId: goal.message.id } : {}) });
      write("");
      target.value = undefined;
    });
  return (
    <form
      class="chat-composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {goal && <Goal target={target} goal={goal} />}
      <ErrorNote error={error} />
      <div class="row">
        <textarea
          ref={field}
          aria-label="Message"
          placeholder="Write a message"
          title="Enter sends, Shift+Enter starts a line"
          rows={1}
          value={text}
          onInput={(event) => {
            write(event.currentTarget.value);
          }}
          onKeyDown={(event) => {
            if (event.key === "Escape") target.value = undefined;
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            submit();
          }}
        />
        <button type="submit" class="primary" disabled={busy || text.value.trim() === ""}>
          {goal?.kind === "edit" ? "Save" : "Send"}
        </button>
      </div>
    </form>
  );
}

function Goal({ target, goal }: { target: Signal<ComposerTarget | undefined>; goal: ComposerTarget }) {
  const name = personName(goal.message.creator);
  return (
    <p class="chat-goal">
      <span>
        {goal.kind === "edit" ? "Editing: " : `Answering ${name === "You" ? "yourself" : name}: `}
        <q>{excerpt(goal.message)}</q>
      </span>
      <button
        type="button"
        class="plain"
        onClick={() => {
          target.value = undefined;
        }}
      >
        Cancel
      </button>
    </p>
  );
}
