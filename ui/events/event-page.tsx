/** The event bus, live. Events are not stored, so the log begins when the page is opened. */
import { useSignal } from "@preact/signals";
import type { BusEvent } from "../api/bus-api.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { LiveLine } from "../parts/live-line.tsx";
import { personName } from "../parts/people.ts";
import { route } from "../state/router.ts";
import { useStream } from "../stream/stream.ts";
import { eventStreamPath, readEventFilter } from "./event-filter.ts";
import { EventFilterForm } from "./event-filter-form.tsx";
import { PublishForm } from "./publish-form.tsx";

const KEPT = 500;

interface Logged {
  number: number;
  at: Date;
  event: BusEvent;
}

export function EventPage() {
  const log = useSignal<readonly Logged[]>([]);
  const paused = useSignal(false);
  const path = eventStreamPath(readEventFilter(route.value.params));
  const { state, error } = useStream({ method: "GET", path, whileHidden: true }, ({ event, data }) => {
    if (event !== "event" || paused.peek()) return;
    const entry = { number: (log.peek()[0]?.number ?? 0) + 1, at: new Date(), event: data as unknown as BusEvent };
    log.value = [entry, ...log.peek()].slice(0, KEPT);
  });
  return (
    <>
      <h1>Events</h1>
      <EventFilterForm key={path} />
      <div class="head-line">
        <LiveLine state={state.value}>{log.value.length}</LiveLine>
        <span class="grow" />
        <button
          type="button"
          class="plain"
          aria-pressed={paused.value}
          onClick={() => {
            paused.value = !paused.value;
          }}
        >
          {paused.value ? "Go on" : "Pause"}
        </button>
        <button
          type="button"
          class="plain"
          onClick={() => {
            log.value = [];
          }}
        >
          Clear
        </button>
      </div>
      <ErrorNote error={error.value} />
      {log.value.length === 0 ? (
        <p class="empty">Nothing has happened since the page was opened.</p>
      ) : (
        <EventTable log={log.value} />
      )}
      <PublishForm />
    </>
  );
}

function EventTable({ log }: { log: readonly Logged[] }) {
  return (
    <div class="table-frame">
      <table>
        <caption class="hidden">Events, newest first</caption>
        <thead>
          <tr>
            {["Time", "Type", "Scope", "Target", "Sender", "Data"].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {log.map(({ number, at, event }) => (
            <tr key={number}>
              <td class="when">{at.toLocaleTimeString()}</td>
              <td>
                <code>{event.type}</code>
              </td>
              <td>{event.scope}</td>
              <td>{event.target}</td>
              <td title={event.sender.identity}>{personName(event.sender.identity)}</td>
              <td>{event.data !== undefined && <code>{JSON.stringify(event.data)}</code>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
