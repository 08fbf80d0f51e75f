import { SQLiteError } from "bun:sqlite";

/** While another program has a database locked, what it keeps waiting is tried again so often, and given up after so long. */
export const LOCKED_RETRY_MS = 25;
export const LOCKED_WAIT_MS = 5_000;

/** Whether SQLite says that another connection has the lock: nothing was done. */
export function isLocked(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause)
    if (each instanceof SQLiteError && each.code?.startsWith("SQLITE_BUSY")) return true;
  return false;
}

/** Opens what another program may have locked for a moment: tried again, off the loop, for as long as writes are. */
export async function openingPatiently<T>(
  open: () => T | Promise<T>,
  { lockedWaitMs = LOCKED_WAIT_MS } = {},
): Promise<T> {
  const untilMs = performance.now() + lockedWaitMs;
  for (;;) {
    try {
      return await open();
    } catch (error) {
      if (!isLocked(error) || performance.now() >= untilMs) throw error;
      await Bun.sleep(LOCKED_RETRY_MS);
    }
  }
}
