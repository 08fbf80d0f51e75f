/** One object, live: as a document, as a chat, as records, its history, and its own row. */
import type { Json } from "../../src/protocol/json.ts";
import { type AnyRecord, spacePath } from "../api/api-client.ts";
import { chatCounters, objectTypes, TYPE_MARKER } from "../api/object-row.ts";
import { ChatView } from "../chat/chat-view.tsx";
import { DocumentView } from "../document/document-view.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { type Tab, Tabs } from "../parts/tabs.tsx";
import { RecordsView } from "../record/records-view.tsx";
import { useLiveRecords } from "../stream/live-records.ts";
import { FilesView } from "./files-view.tsx";
import { HistoryView } from "./history-view.tsx";
import { ObjectHead } from "./object-head.tsx";
import { TypeView } from "./type-view.tsx";

export interface ObjectPageProps {
  spaceId: string;
  objectId: string;
  view: string | undefined;
}

export function ObjectPage({ spaceId, objectId, view }: ObjectPageProps) {
  const live = useLiveRecords(spacePath(spaceId, "objects", "query"), {
    filter: { id: objectId },
    sort: ["id"],
    limit: 1,
  });
  const row = live.records.value[0];
  if (live.error.value) return <ErrorNote error={live.error.value} />;
  if (!row) {
    if (live.state.value !== "live") return <p class="faint">Loading…</p>;
    return <p class="empty">This object is not here. It may have been deleted.</p>;
  }
  const views = viewsOf(row);
  const shown = views.find(({ name }) => name === view)?.name ?? views[0]?.name;
  const tabs = views.map(
    ({ name, title }): Tab => ({
      title,
      to: ["spaces", spaceId, "objects", objectId, name],
      current: name === shown,
    }),
  );
  return (
    <>
      <ObjectHead spaceId={spaceId} row={row} />
      <Tabs label="Views of the object" tabs={tabs} />
      {shown === "type" && <TypeView spaceId={spaceId} typeId={objectId} />}
      {shown === "document" && <DocumentView spaceId={spaceId} objectId={objectId} row={row} />}
      {shown === "chat" && <ChatView spaceId={spaceId} objectId={objectId} row={row} />}
      {shown === "records" && <RecordsView spaceId={spaceId} objectId={objectId} types={objectTypes(row)} />}
      {shown === "files" && <FilesView spaceId={spaceId} objectId={objectId} row={row} />}
      {shown === "history" && <HistoryView spaceId={spaceId} objectId={objectId} row={row} />}
      {shown === "row" && <pre class="card">{JSON.stringify(row as Json, null, 2)}</pre>}
    </>
  );
}

/** The views of an object; the first is shown unless the address names another. */
function viewsOf(row: AnyRecord): { name: string; title: string }[] {
  const types = objectTypes(row);
  const { unread } = chatCounters(row);
  const isType = types.includes(TYPE_MARKER);
  return [
    ...(types.includes("page") || types.includes("editor") ? [{ name: "document", title: "Document" }] : []),
    ...(types.includes("chat") ? [{ name: "chat", title: unread > 0 ? `Chat (${unread})` : "Chat" }] : []),
    ...(isType
      ? [{ name: "type", title: "Type" }]
      : [
          { name: "records", title: "Records" },
          { name: "files", title: "Files" },
        ]),
    { name: "history", title: "History" },
    { name: "row", title: "Own row" },
  ];
}
