/** How long a read may hold the server's loop before it is handed to a reader. */
const INLINE_MS = 6;

/**
 * Runs a read on the server's own event loop; returns undefined when it did not end in time. The read must call `shouldStop`
 * regularly. Errors of the read itself are thrown.
 */
export function onTheSpot<T>(read: (shouldStop: () => boolean) => T): T | undefined {
  const until = performance.now() + INLINE_MS;
  let late = false;
  try {
    return read(() => {
      late = performance.now() > until;
      return late;
    });
  } catch (error) {
    if (!late) throw error;
    return undefined;
  }
}
