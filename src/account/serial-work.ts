/**
 * Work that never overlaps with other work of the same name: each piece begins when the one before has ended, whether that
 * failed or not.
 */
export function createSerialWork<K>(onFailed: (name: K, error: unknown) => void) {
  const last = new Map<K, Promise<void>>();
  return {
    /** Rejects as the work does. */
    run(name: K, work: () => Promise<void>): Promise<void> {
      const next = (last.get(name) ?? Promise.resolve()).then(work);
      const kept = next
        .catch((error: unknown) => onFailed(name, error))
        .finally(() => {
          if (last.get(name) === kept) last.delete(name);
        });
      last.set(name, kept);
      return next;
    },
    /** Resolves when nothing is under way that was begun before. */
    idle: async (): Promise<void> => void (await Promise.allSettled(last.values())),
  };
}
