import type { Content } from "../../files/content.ts";
import type { FileStateNo } from "../../protocol/file-state.ts";
import type { Replica } from "../../space/port/replica.ts";

/** What a device knows of a content's backup. */
export interface BackupContent extends BackupNote {
  readonly root: string;
  readonly size: number;
  readonly state: FileStateNo;
  /** A bit for each chunk that the network's store has acknowledged and given back. */
  readonly sent: Uint8Array | null;
  /** Null while nobody has proved what its bytes are. */
  readonly hash: Uint8Array | null;
}

interface BackupNote {
  readonly attempts: number;
  readonly lastErr: string;
  readonly nextMs: number;
}

/** What a space's files are to their backup. */
export interface BackupSpace {
  readonly replica: Replica;
  content(root: string): BackupContent | undefined;
  /** Contents in a state that are due, behind one. */
  due(state: FileStateNo, nowMs: number, after: string, limit: number): BackupContent[];
  isAllDurable(): boolean;
  /** A durable content whose place was not looked at since. */
  oldestChecked(beforeMs: number): BackupContent | undefined;
  /** Undefined when no file names it. Throws `file.not_available` while its key is missing. */
  contentOfRoot(root: string): Content | undefined;
  setStates(root: string, state: FileStateNo, note: BackupNote): Promise<void>;
  /** Which chunks were sent; null when that is of no interest any more. */
  noteSent(root: string, sent: Uint8Array | null): Promise<void>;
  noteChecked(root: string, atMs: number): Promise<void>;
  confirmInline(): Promise<void>;
  doubtInline(): Promise<void>;
  doubtAll(): Promise<void>;
  doubt(root: string): Promise<void>;
}
