/** Filter, sort order and limit of a list of records; kept in the address. */
import { useSignal, useSignalEffect } from "@preact/signals";
import { type ApiError, toApiError } from "../api/api-client.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { route, setParams } from "../state/router.ts";
import { type QueryText, readQueryText, toQueryBody } from "./record-query.ts";

export function QueryForm({ defaultSort, error }: { defaultSort: string; error: ApiError | undefined }) {
  const text = useSignal<QueryText>(readQueryText(route.peek().params, defaultSort));
  const fault = useSignal<ApiError | undefined>(undefined);
  useSignalEffect(() => {
    text.value = readQueryText(route.value.params, defaultSort);
  });
  const apply = (event: Event) => {
    event.preventDefault();
    try {
      toQueryBody(text.value);
      fault.value = undefined;
      setParams({ filter: text.value.filter, sort: text.value.sort, limit: text.value.limit });
    } catch (problem) {
      fault.value = toApiError(problem);
    }
  };
  const edit =
    (name: keyof QueryText) => (event: Event & { currentTarget: HTMLInputElement | HTMLTextAreaElement }) => {
      text.value = { ...text.value, [name]: event.currentTarget.value };
    };
  return (
    <form class="query-form" onSubmit={apply}>
      <div class="grow">
        <label for="query-filter">Filter</label>
        <textarea
          id="query-filter"
          rows={2}
          spellcheck={false}
          placeholder={'{"svc.name": {"$regex": "^a"}}'}
          value={text.value.filter}
          onInput={edit("filter")}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey) event.currentTarget.form?.requestSubmit();
            else return;
            event.preventDefault();
          }}
        />
      </div>
      <div>
        <label for="query-sort">Sort</label>
        <input id="query-sort" spellcheck={false} value={text.value.sort} onInput={edit("sort")} />
      </div>
      <div class="narrow">
        <label for="query-limit">Limit</label>
        <input id="query-limit" type="number" min={1} max={1000} value={text.value.limit} onInput={edit("limit")} />
      </div>
      <button type="submit">Apply</button>
      <ErrorNote error={fault.value ?? error} />
    </form>
  );
}
