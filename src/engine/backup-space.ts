import type { FileContents } from "../domain/file/file-contents.ts";
import { FILE_DURABLE } from "../protocol/file-state.ts";
import type { BackupSpace } from "../sync/file/backup-space.ts";

/** The files of a space, as their backup sees them. */
export function backupSpaceOf(own: FileContents): BackupSpace {
  const { space, table } = own;
  return {
    replica: space.replica,
    content: table.content,
    due: table.pending,
    isAllDurable: () => table.counts().every(({ state }) => state === FILE_DURABLE),
    oldestChecked: table.oldestChecked,
    contentOfRoot: own.contentOfRoot,
    setStates: own.setStates,
    noteSent: (root, sent) => space.engine.write(() => table.setSent(root, sent)),
    noteChecked: (root, atMs) => space.engine.write(() => table.setChecked(root, atMs)),
    confirmInline: own.confirmInline,
    doubtInline: own.doubtInline,
    doubtAll: own.doubtAll,
    doubt: own.doubt,
  };
}
