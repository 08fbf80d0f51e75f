import { SQLiteError } from "bun:sqlite";
import { refusal } from "../../protocol/refusals.ts";
import { StoredFileError } from "../../protocol/storage-fault.ts";
import { type FoldResult, foldRecord, type RecordState } from "./record-fold.ts";

/** What SQLite says of the content of a statement, and of nothing around it. */
const CONTENT_CODES = /^SQLITE_(?:ERROR|TOOBIG|CONSTRAINT|MISMATCH|RANGE)/;

/** What every device says of a change that the fold stumbles over. */
export const FOLD_FAULT = refusal("change.unfoldable");

/**
 * Whether an error tells of this device (its disk, its memory, a lock on its files) and not of what was being taken in. Only
 * then a batch fails: what is wrong with a change is that change's own matter, however it shows.
 */
export function isOfEnvironment(error: unknown): boolean {
  if (error instanceof StoredFileError) return true;
  if (error instanceof SQLiteError) return !CONTENT_CODES.test(error.code ?? "");
  if (typeof (error as { code?: unknown } | null)?.code === "string" && "syscall" in (error as object)) return true;
  return error instanceof Error && /out of memory|allocation failed/i.test(error.message);
}

/**
 * Folds a change into a record, whatever it holds: one at which a rule stumbles leaves the record as it was, on every device.
 * `again` makes the state anew, since the first is spent by then.
 */
export function foldTotally(
  state: RecordState,
  again: () => RecordState,
  ...args: Parameters<typeof foldRecord> extends [RecordState, ...infer Rest] ? Rest : never
): FoldResult {
  try {
    return foldRecord(state, ...args);
  } catch (error) {
    if (isOfEnvironment(error)) throw error;
    return {
      state: again(),
      effects: [],
      drops: [{ part: 0, opIndex: -1, refusal: FOLD_FAULT }],
      ops: 0,
    };
  }
}
