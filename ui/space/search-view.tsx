/** Searches a space for words: in documents, messages, names and properties. */
import { useSignal } from "@preact/signals";
import type { SearchHit } from "../../src/protocol/search.ts";
import { searchSpace } from "../api/search-api.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { goWith, href, route } from "../state/router.ts";
import { useLoaded } from "../state/use-loaded.ts";
import { highlighted } from "./highlights.ts";

/** The query is in the address. */
const queryOf = () => route.value.params.get("q") ?? "";

export function SearchBox({ spaceId }: { spaceId: string }) {
  const text = useSignal(queryOf());
  return (
    <search>
      <form
        class="inline-form tight search"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.value.trim() !== "") goWith({ q: text.value.trim() }, "spaces", spaceId, "search");
        }}
      >
        <input
          type="search"
          aria-label="Search this space"
          placeholder='Words, "a phrase", begin*'
          value={text}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
        <button type="submit">Search</button>
      </form>
    </search>
  );
}

export function SearchResults({ spaceId }: { spaceId: string }) {
  const query = queryOf();
  const { value: found, error } = useLoaded(
    () => (query === "" ? Promise.resolve(undefined) : searchSpace(spaceId, query)),
    `${spaceId} ${query}`,
  );
  if (error) return <ErrorNote error={error} />;
  if (query === "") return <p class="empty">Say above what to look for.</p>;
  if (!found) return <p class="faint">Searching…</p>;
  const { reply, titleByObject } = found;
  return (
    <>
      {reply.incomplete && (
        <p class="note note-warning">Some content is still being read. Search again in a moment for all of it.</p>
      )}
      {reply.hits.length === 0 && <p class="empty">Nothing was found.</p>}
      <ol class="history" aria-label="Found">
        {reply.hits.map((hit) => (
          <Hit
            key={`${hit.objectId} ${hit.dataset} ${hit.recordId} ${hit.chunk ?? 0}`}
            spaceId={spaceId}
            hit={hit}
            title={titleByObject.get(hit.objectId) ?? `…${hit.objectId.slice(-6)}`}
          />
        ))}
      </ol>
    </>
  );
}

const SCOPE_WORDS: Readonly<Record<string, string>> = { basic: "content", chat: "chat", props: "property" };

function Hit({ spaceId, hit, title }: { spaceId: string; hit: SearchHit; title: string }) {
  return (
    <li class="card">
      <a href={href("spaces", spaceId, "objects", hit.objectId)}>{title}</a>{" "}
      <span class="tag">{SCOPE_WORDS[hit.scope] ?? hit.scope}</span>
      <p class="hit">
        {highlighted(hit).map(({ text, marked }, index) =>
          // These are pieces of a text that does not change.
          marked ? <mark key={index}>{text}</mark> : <span key={index}>{text}</span>,
        )}
      </p>
    </li>
  );
}
