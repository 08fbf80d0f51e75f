/** Locks that show who is alive: a holder never releases its lock, so whoever gets it knows that the holder is gone. */

/** Held by a tab. */
export const tabLock = (tab: string): string => `svc tab ${tab}`;
/** Held by the shared worker. */
export const workerLock = (worker: string): string => `svc worker ${worker}`;

/** Resolves when the lock is held. */
export function holdUntilGone(lock: string): Promise<void> {
  return new Promise((resolve) => {
    void navigator.locks.request(lock, () => {
      resolve();
      return new Promise<never>(() => {});
    });
  });
}

/** Resolves when the lock's holder is gone. */
export async function untilGone(lock: string): Promise<void> {
  await navigator.locks.request(lock, { mode: "shared" }, () => {});
}
