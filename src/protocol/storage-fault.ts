import { type ErrorCode, SvcError } from "./errors.ts";

/** A fault that our own reader finds in a stored file. Faults that SQLite finds have their own codes. */
export class StoredFileError extends Error {
  readonly code: "damaged" | "version";
  constructor(code: "damaged" | "version", message: string) {
    super(message);
    this.code = code;
  }
}

/** A stored row differs from what was stored. Code that knows its changes can repair it. */
export class DamagedRowError extends StoredFileError {
  /** The row's local number. */
  readonly row: number;
  constructor(row: number) {
    super("damaged", `row ${row} of a space's database is not what was stored`);
    this.row = row;
  }
}

type StorageCode = Extract<ErrorCode, `storage.${string}` | "server.unavailable">;

/** Codes of SQLite and of the operating system, and their meaning for the caller. */
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

/** SQLite's own code for it is that of any faulty statement. */
export const isJsonFault = (error: unknown): boolean =>
  error instanceof Error && error.name === "SQLiteError" && error.message === "malformed JSON";

/** What comes from outside is parsed, and refused, where it comes in: further in, a text that is no JSON was stored as one. */
export const isSpoiltText = (error: unknown): boolean => error instanceof SyntaxError || isJsonFault(error);

/** The error for a disk, or a file on it, that keeps the server from working (STORE-2); undefined for any other error. */
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

interface FailureReport {
  message: string;
  stack: string;
  /** Its `storageFault`. */
  fault?: string | undefined;
  /** The row of a DamagedRowError. */
  damagedRow?: number | undefined;
}

/** Rebuilds an error of another thread or a child process from its message. */
export function failureElsewhere(report: FailureReport): Error {
  if (report.damagedRow !== undefined) return new DamagedRowError(report.damagedRow);
  const error = Object.assign(new Error(report.message), { stack: report.stack });
  return report.fault === undefined ? error : new SvcError(report.fault as StorageCode, { cause: error });
}
