import { createEvents } from "../../base/events.ts";
import { FILE_DURABLE, type FileStateNo } from "../../protocol/file-state.ts";
import type { FileRef, FileTable } from "../../store/tables/file-table.ts";
import { type FileState, stateName } from "./file-row.ts";

/** Status body and frame (FILE-3). */
export interface FileStatus {
  fileId: string;
  objectId: string;
  state: FileState;
  cached: boolean;
  attempts?: number;
  lastErr?: string;
}

/** Where the backup of files stands on this device, and who is notified when it moves. */
export function createFileStatuses(table: FileTable, isCached: (ref: FileRef) => boolean) {
  const events = createEvents<{ changed: [status: FileStatus] }>();
  const of = (ref: FileRef): FileStatus => {
    const content = ref.root === null ? undefined : table.content(ref.root);
    const isPending = ref.state !== FILE_DURABLE && content !== undefined;
    return {
      fileId: ref.fileId,
      objectId: ref.owner,
      state: stateName(ref.state),
      cached: isCached(ref),
      ...(isPending && content.attempts > 0 ? { attempts: content.attempts } : {}),
      ...(isPending && content.lastErr !== "" ? { lastErr: content.lastErr } : {}),
    };
  };
  return {
    of,
    nameOf: (state: FileStateNo): FileState => stateName(state),
    /** Told of transitions on this device from now on. Answers how to stop. */
    subscribe: (listener: (status: FileStatus) => void): (() => void) => events.on("changed", listener),
    watched: (): boolean => events.isHeard("changed"),
    changed(fileIds: readonly string[]): void {
      if (!events.isHeard("changed")) return;
      for (const fileId of fileIds) {
        const ref = table.ref(fileId);
        if (ref) events.emit("changed", of(ref));
      }
    },
  };
}
