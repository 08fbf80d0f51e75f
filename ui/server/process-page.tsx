/** Long work under way, updated by events; a poll drops expired entries. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ProcessRow } from "../../src/protocol/event.ts";
import { type ApiError, toApiError } from "../api/api-client.ts";
import { busApi } from "../api/bus-api.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { useFormAction } from "../parts/form-action.ts";
import { LiveLine } from "../parts/live-line.tsx";
import { personName } from "../parts/people.ts";
import { useStream } from "../stream/stream.ts";

const POLL_MS = 5000;

export function ProcessPage() {
  const processes = useSignal<readonly ProcessRow[] | undefined>(undefined);
  const error = useSignal<ApiError | undefined>(undefined);
  const load = async () => {
    try {
      processes.value = await busApi.processes();
      error.value = undefined;
    } catch (fault) {
      error.value = toApiError(fault);
    }
  };
  const { state } = useStream({ method: "GET", path: "/v1/events/subscribe?type=process.*" }, () => void load());
  useEffect(() => {
    const timer = setInterval(() => void load(), POLL_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <>
      <h1>Processes</h1>
      <p class="lead">Long work of this account's devices and of the people it shares spaces with.</p>
      <LiveLine state={state.value} />
      <ErrorNote error={error.value} />
      {processes.value?.length === 0 && <p class="empty">Nothing is under way.</p>}
      <ul class="cards cards-wide">
        {processes.value?.map((row) => (
          <ProcessCard key={`${row.identity} ${row.id}`} row={row} />
        ))}
      </ul>
    </>
  );
}

const TONES = { running: "busy", done: "good", failed: "bad", cancelled: "bad" } as const;

function ProcessCard({ row }: { row: ProcessRow }) {
  const { busy, error, run } = useFormAction();
  const known = isMeasured(row);
  return (
    <li class="card">
      <h2>{row.title}</h2>
      <p class="tags">
        <span class={`state state-${TONES[row.state]}`}>{row.state}</span>
        <span class="tag">{row.kind}</span>
        <span class="tag">{row.scope}</span>
        <span class="tag">{personName(row.identity)}</span>
      </p>
      {row.state === "running" && (
        <progress aria-label={row.title} {...(known ? { max: row.total, value: row.done } : {})} />
      )}
      <p class="faint">{progressText(row)}</p>
      {row.error && <p class="note note-error">{row.error.message}</p>}
      <p class="faint">
        <code>{row.id}</code> since {new Date(row.startedAt * 1000).toLocaleTimeString()}
      </p>
      <ErrorNote error={error} />
      {row.state === "running" && (
        <button
          type="button"
          disabled={busy}
          onClick={() =>
            run(async () => {
              await busApi.cancelProcess(row.id, row.identity);
            })
          }
        >
          Ask it to stop
        </button>
      )}
    </li>
  );
}

function isMeasured({ total }: ProcessRow): boolean {
  return total !== undefined && total > 0;
}

function progressText(row: ProcessRow): string {
  const done = isMeasured(row) ? `${row.done} of ${row.total}` : row.done > 0 ? String(row.done) : "";
  return [done, row.message].filter(Boolean).join(" · ");
}
