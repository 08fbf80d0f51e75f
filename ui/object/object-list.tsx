/** The objects of a space, live, and a form for a new one. */
import { spacePath } from "../api/api-client.ts";
import { chatCounters, objectTitle, objectTypes } from "../api/object-row.ts";
import { displayValue } from "../parts/display-value.ts";
import { useTypeNames } from "../parts/use-type-names.ts";
import { type Column, LiveTable } from "../record/live-table.tsx";
import { href } from "../state/router.ts";
import { NewObject } from "./new-object.tsx";

export function ObjectList({ spaceId }: { spaceId: string }) {
  const typeName = useTypeNames(spaceId);
  const columns: Column[] = [
    {
      title: "Name",
      cell: (record) => {
        const { unread } = chatCounters(record);
        return (
          <>
            <a href={href("spaces", spaceId, "objects", record.id)}>{objectTitle(record)}</a>
            {unread > 0 && <span class="badge">{unread} unread</span>}
          </>
        );
      },
    },
    { title: "Types", cell: (record) => objectTypes(record).map(typeName).join(", ") },
    { title: "Modified", cell: (record) => displayValue(record["modifiedAt"]) },
  ];
  return (
    <>
      <NewObject spaceId={spaceId} />
      <LiveTable
        caption="Objects"
        path={spacePath(spaceId, "objects", "query")}
        target={{}}
        defaultSort="-modifiedAt"
        columns={columns}
      />
    </>
  );
}
