import type { Content } from "../../files/content.ts";
import type { Space } from "../../space/space.ts";
import type { FileStateNo, FileTable } from "../../store/file-table.ts";

/** What a space's files are to their backup. */
export interface BackupSpace {
  readonly space: Space;
  readonly table: FileTable;
  /** Undefined when no file names it. Throws `file.not_available` while its key is missing. */
  contentOfRoot(root: string): Content | undefined;
  setStates(root: string, state: FileStateNo, note: BackupNote): Promise<void>;
  settleInline(): Promise<void>;
  doubtInline(): Promise<void>;
  doubtAll(): Promise<void>;
  doubt(root: string): Promise<void>;
}

interface BackupNote {
  readonly attempts: number;
  readonly lastErr: string;
  readonly nextMs: number;
}
