import { type ErrorCode, SvcError } from "./errors.ts";

/** What is wrong with a stored file, told by its reader: what SQLite itself finds has codes of its own. */
export class StoredFileError extends Error {
  readonly code: "damaged" | "version";
  constructor(code: "damaged" | "version", message: string) {
    super(message);
    this.code = code;
  }
}

/** A stored row is not what was stored. Whoever knows its changes can make it that again. */
export class DamagedRowError extends StoredFileError {
  /** Its local number. */
  readonly row: number;
  constructor(row: number) {
    super("damaged", `row ${row} of a space's database is not what was stored`);
    this.row = row;
  }
}

type StorageCode = Extract<ErrorCode, `storage.${string}` | "server.unavailable">;

/** Codes of SQLite and of the operating system, and what they mean to who asked. */
const MEANINGS: readonly (readonly [RegExp, StorageCode])[] = [
  [/^(SQLITE_FULL|ENOSPC|EDQUOT|EFBIG)/, "storage.full"],
  [/^(SQLITE_CORRUPT|SQLITE_NOTADB|damaged$)/, "storage.damaged"],
  [/^(SQLITE_READONLY|SQLITE_CANTOPEN|SQLITE_PERM|EACCES|EPERM|EROFS)/, "storage.read_only"],
  [/^version$/, "storage.version"],
  [/^(SQLITE_IOERR|EIO$)/, "storage.failed"],
  [/^SQLITE_BUSY/, "server.unavailable"],
];

const LOCKED = (whose: string): string =>
  `Another program has ${whose} database locked; close whatever has files of the data directory open, and try again`;

/** The answer where another program's lock keeps the server from doing what it should. `whose`: of a database, in words. */
export const lockedFault = (whose: string, cause: unknown): SvcError =>
  new SvcError("server.unavailable", { message: LOCKED(whose), cause });

/** What comes from outside is parsed, and refused, where it comes in: further in, a text that is no JSON was stored as one. */
export const isSpoiltText = (error: unknown): boolean =>
  error instanceof SyntaxError ||
  (error instanceof Error && error.name === "SQLiteError" && error.message === "malformed JSON");

/** The answer for a disk, or a file on it, that keeps the server from doing what it should; undefined for any other error. */
export function storageFault(thrown: unknown): SvcError | undefined {
  for (let each = thrown; each instanceof Error; each = each.cause) {
    const { code } = each as { code?: unknown };
    const meaning = typeof code === "string" ? MEANINGS.find(([codes]) => codes.test(code))?.[1] : undefined;
    if (meaning === "server.unavailable") return lockedFault("the", thrown);
    if (meaning) return new SvcError(meaning, { cause: thrown });
    if (isSpoiltText(each)) return new SvcError("storage.damaged", { cause: thrown });
  }
  return undefined;
}

interface FailureTold {
  message: string;
  stack: string;
  /** Its `storageFault`. */
  fault?: string | undefined;
  /** Of a DamagedRowError. */
  damagedRow?: number | undefined;
}

/** What failed on another thread or in a child, as it was told here. */
export function failureElsewhere(told: FailureTold): Error {
  if (told.damagedRow !== undefined) return new DamagedRowError(told.damagedRow);
  const error = Object.assign(new Error(told.message), { stack: told.stack });
  return told.fault === undefined ? error : new SvcError(told.fault as StorageCode, { cause: error });
}
