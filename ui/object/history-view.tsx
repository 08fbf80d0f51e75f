/** The changes of an object, newest first; opening one shows what it changed. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { HistoryChange, HistoryPage, HistoryRecordDiff } from "../../src/protocol/history.ts";
import type { Json } from "../../src/protocol/json.ts";
import type { AnyRecord } from "../api/api-client.ts";
import { type HistoryApi, historyApi } from "../api/history-api.ts";
import { displayValue } from "../parts/display-value.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { personName } from "../parts/people.ts";
import { useLoaded } from "../state/use-loaded.ts";

export interface HistoryViewProps {
  spaceId: string;
  objectId: string;
  /** The object's own row: when it changes, the list is read from the beginning. */
  row: AnyRecord;
}

export function HistoryView({ spaceId, objectId, row }: HistoryViewProps) {
  const api = historyApi(spaceId, objectId);
  const { busy, error, run } = useFormAction();
  const shown = useSignal<HistoryPage | undefined>(undefined);
  const newest = useLoaded(() => api.page(undefined), JSON.stringify(row["_ver"] ?? row["modifiedAt"]));
  useEffect(() => {
    if (newest.value) shown.value = newest.value;
  }, [newest.value]);
  const page = shown.value;
  const older = () =>
    run(async () => {
      if (!page?.cursor) return;
      const next = await api.page(page.cursor);
      shown.value = { ...next, changes: [...page.changes, ...next.changes] };
    });
  return (
    <section aria-label="History">
      <ErrorNote error={newest.error ?? error} />
      {page?.changes.length === 0 && <p class="empty">Nothing that is kept in history has changed.</p>}
      <ol class="history">
        {page?.changes.map((change) => (
          <ChangeItem key={change.version} change={change} api={api} />
        ))}
      </ol>
      {page?.cursor !== undefined && (
        <button type="button" disabled={busy} onClick={older}>
          Older changes
        </button>
      )}
    </section>
  );
}

function ChangeItem({ change, api }: { change: HistoryChange; api: HistoryApi }) {
  const open = useSignal(false);
  const count = change.touched?.length ?? 0;
  return (
    <li>
      <details
        class="card"
        onToggle={(event) => {
          open.value = event.currentTarget.open;
        }}
      >
        <summary>
          <strong>{personName(change.author)}</strong> · {new Date(change.timestamp * 1000).toLocaleString()} ·{" "}
          {change.dataset} · {count === 1 ? "1 record" : `${count} records`}
        </summary>
        {open.value && <Effect version={change.version} api={api} />}
      </details>
    </li>
  );
}

function Effect({ version, api }: { version: string; api: HistoryApi }) {
  const { value: diff, error } = useLoaded(() => api.effect(version), version);
  if (error) return <ErrorNote error={error} />;
  if (!diff) return <p class="faint">Loading…</p>;
  const records = diff.datasets.flatMap(({ records: all }) => all);
  if (records.length === 0) return <p class="faint">It had no effect on what was there.</p>;
  return (
    <>
      {records.map((record) => (
        <RecordDiff key={record.id} record={record} />
      ))}
    </>
  );
}

function RecordDiff({ record }: { record: HistoryRecordDiff }) {
  return (
    <div class="record-diff">
      <p>
        <span class="tag">{record.kind}</span> <code>{record.id}</code>
      </p>
      <ul class="fields">
        {record.fields?.map(({ path, before, after }) => (
          <li key={path.join(".")}>
            <code>{path.join(".")}</code> {before !== undefined && <del>{displayValue(before as Json)}</del>}{" "}
            {after !== undefined && <ins>{displayValue(after as Json)}</ins>}
          </li>
        ))}
      </ul>
    </div>
  );
}
