/** A query form above the records that match it, kept up to date by the server. */
import type { ComponentChildren } from "preact";
import { type AnyRecord, type ApiError, type QueryBody, toApiError } from "../api/api-client.ts";
import { displayValue } from "../parts/display-value.ts";
import { LiveLine } from "../parts/live-line.tsx";
import { route } from "../state/router.ts";
import { useLiveRecords } from "../stream/live-records.ts";
import { QueryForm } from "./query-form.tsx";
import { DEFAULT_LIMIT, readQueryText, toQueryBody } from "./record-query.ts";

export interface Column {
  title: string;
  cell: (record: AnyRecord) => ComponentChildren;
}

export interface LiveTableProps {
  caption: string;
  /** Path of the query endpoint; the table follows its `/subscribe`. */
  path: string;
  /** The fields of the body besides filter, sort and limit. */
  target: Pick<QueryBody, "objectId" | "dataset">;
  defaultSort: string;
  /** Undefined: the columns come from the records' own fields. */
  columns?: readonly Column[];
  /** Actions on a record, shown beside its JSON. */
  actions?: (record: AnyRecord) => ComponentChildren;
}

const COLUMNS_MAX = 6;

export function LiveTable({ caption, path, target, defaultSort, columns, actions }: LiveTableProps) {
  const [body, addressError] = readBody(defaultSort);
  const live = useLiveRecords(path, { ...body, ...target });
  const records = live.records.value;
  return (
    <section aria-label={caption}>
      <QueryForm defaultSort={defaultSort} error={addressError ?? live.error.value} />
      <LiveLine state={live.state.value}>{countText(records.length, live.total.value)}</LiveLine>
      {records.length > 0 && (
        <RecordTable caption={caption} records={records} columns={columns ?? fieldColumns(records)} actions={actions} />
      )}
      {records.length === 0 && live.state.value === "live" && <p class="empty">Nothing matches.</p>}
    </section>
  );
}

function readBody(defaultSort: string): [QueryBody, ApiError | undefined] {
  try {
    return [toQueryBody(readQueryText(route.value.params, defaultSort)), undefined];
  } catch (error) {
    return [{ sort: [defaultSort], limit: DEFAULT_LIMIT }, toApiError(error)];
  }
}

function countText(shown: number, total = 0): string {
  return total > shown ? `${shown} of ${total}` : String(shown);
}

interface RecordTableProps {
  caption: string;
  records: readonly AnyRecord[];
  columns: readonly Column[];
  actions: LiveTableProps["actions"];
}

function RecordTable(props: RecordTableProps) {
  return (
    <div class="table-frame">
      <table>
        <caption class="hidden">{props.caption}</caption>
        <thead>
          <tr>
            {props.columns.map(({ title }) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
            <th scope="col">Record</th>
          </tr>
        </thead>
        <tbody>
          {props.records.map((record) => (
            <tr key={record.id}>
              {props.columns.map(({ title, cell }) => (
                <td key={title}>{cell(record)}</td>
              ))}
              <td>
                <details>
                  <summary>JSON</summary>
                  <pre>{JSON.stringify(record, null, 2)}</pre>
                </details>
                {props.actions?.(record)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The id and the fields that most of the first records have; system fields are shown only in the JSON. */
function fieldColumns(records: readonly AnyRecord[]): Column[] {
  const counts = new Map<string, number>();
  for (const record of records.slice(0, 50)) {
    for (const name of Object.keys(record)) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const names = [...counts.keys()].filter((name) => name !== "id" && !name.startsWith("_"));
  const common = names.toSorted((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0)).slice(0, COLUMNS_MAX - 1);
  return ["id", ...common].map((name) => ({ title: name, cell: (record) => displayValue(record[name]) }));
}
