import { expect, test } from "bun:test";
import { FILE_DURABLE, FILE_INFLIGHT, FILE_LIMITED, type FileStateNo } from "../../protocol/file-state.ts";
import type { FileContent, FileRef, FileTable } from "../../store/tables/file-table.ts";
import { createFileStatuses } from "./file-status.ts";

test("[FILE-3] attempts and the last error are shown while it is pending, on the stream too, and are gone once it is durable", () => {
  let row: { state: FileStateNo; attempts: number; lastErr: string } = {
    state: FILE_INFLIGHT,
    attempts: 0,
    lastErr: "",
  };
  const refNow = () => ({ fileId: "file", owner: "object", root: "root", state: row.state }) as FileRef;
  const table = { ref: refNow, content: () => row as FileContent } as unknown as FileTable;
  const statuses = createFileStatuses(table, () => true);
  const notified: unknown[] = [];
  statuses.subscribe((status) => notified.push(status));
  const file = { fileId: "file", objectId: "object", cached: true };
  const failed = { attempts: 2, lastErr: "The network has no room for it" };
  for (const [state, note, shown] of [
    [FILE_INFLIGHT, { attempts: 0, lastErr: "" }, { state: "inflight" }],
    [FILE_INFLIGHT, failed, { state: "inflight", ...failed }],
    [FILE_LIMITED, failed, { state: "limited", ...failed }],
    // Whatever a row says of earlier attempts: nothing is pending.
    [FILE_DURABLE, failed, { state: "durable" }],
  ] as const) {
    row = { state, ...note };
    statuses.changed(["file"]);
    expect([statuses.of(refNow()), notified.at(-1)]).toStrictEqual(Array(2).fill({ ...file, ...shown }));
  }
});
