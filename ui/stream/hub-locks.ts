/** Locks that show who lives: their holders never let go, so that whoever gets one knows that its holder is no more. */

/** Held by a tab. */
export const tabLock = (tab: string): string => `svc tab ${tab}`;
/** Held by the shared worker. */
export const workerLock = (worker: string): string => `svc worker ${worker}`;

/** Resolves when it is held. */
export function holdUntilGone(lock: string): Promise<void> {
  return new Promise((resolve) => {
    void navigator.locks.request(lock, () => {
      resolve();
      return new Promise<never>(() => {});
    });
  });
}

/** Resolves when its holder is no more. */
export async function untilGone(lock: string): Promise<void> {
  await navigator.locks.request(lock, { mode: "shared" }, () => {});
}
